#!/usr/bin/python
# MIT OR Apache-2.0
"""Module linerate_tune."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: linerate_tune
short_description: Set a host up for a path, and keep only what the path needs
description:
  - Runs C(linerate tune). For a path that is known (I(rate) and I(rtt)) the settings follow from it. For a I(host), the
    path is measured, and a change is kept only if measurements confirm it.
  - In check mode the plan is shown and nothing is changed. Every change can be rolled back with C(linerate tune undo).
options:
  program:
    description: Path or name of linerate on the host.
    type: str
    default: linerate
  rate:
    description: Rate of a known path in bit/s, such as 10G.
    type: str
  rtt:
    description: Round trip of a known path, such as 117ms.
    type: str
  host:
    description: Far end of a path to be measured, on which C(linerate serve) runs.
    type: str
  port:
    description: Port of the far end.
    type: int
    default: 5201
  role:
    description: What to improve, and what must not get worse.
    type: str
    choices: [wan-bulk, lan, low-latency, web, router]
    default: wan-bulk
  until_reboot:
    description: Keep the changes until the next boot only; write no file.
    type: bool
    default: false
author:
  - The linerate authors (@linerate)
"""

EXAMPLES = r"""
- name: Set the host up for a long fast path
  linerate.fleet.linerate_tune:
    rate: 10G
    rtt: 117ms

- name: Remove what limits transfers to a host, if measurements confirm it
  linerate.fleet.linerate_tune:
    host: backup.example
    until_reboot: true
"""

RETURN = r"""
outcome:
  description: Outcome of the tuning, as in its document.
  returned: always
  type: str
sentence:
  description: The outcome in a sentence.
  returned: always
  type: str
changes:
  description: Changes of this host that were made, or that would be in check mode.
  returned: always
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.linerate.fleet.plugins.module_utils.linerate import document


def changes_of(tune):
    """Changes of the near host, in their order."""
    found = []
    for number, changes in enumerate(tune["rounds"]):
        for entry in changes["changes"]:
            if entry["end"] == "near":
                found.append((number, entry["change"]))
    return found


def name_of(target):
    """Name of what is changed."""
    return target.get("key") or " ".join(str(value) for key, value in sorted(target.items()) if key != "kind")


def lines(changes, side):
    """Settings before or after, one per line."""
    return "".join("{0} = {1}\n".format(name_of(change["target"]), change[side]) for change in changes)


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "program": {"type": "str", "default": "linerate"},
            "rate": {"type": "str"},
            "rtt": {"type": "str"},
            "host": {"type": "str"},
            "port": {"type": "int", "default": 5201},
            "role": {
                "type": "str",
                "default": "wan-bulk",
                "choices": ["wan-bulk", "lan", "low-latency", "web", "router"],
            },
            "until_reboot": {"type": "bool", "default": False},
        },
        required_together=[("rate", "rtt")],
        required_one_of=[("rate", "host")],
        mutually_exclusive=[("rate", "host")],
        supports_check_mode=True,
    )
    params = module.params
    arguments = ["tune", "--no-history", "--json", "--quiet", "--yes", "--role", params["role"]]
    if params["host"]:
        arguments += [params["host"], "--port", str(params["port"])]
        arguments += ["--dry-run"] if module.check_mode else []
    else:
        arguments += ["--rate", params["rate"], "--rtt", params["rtt"]]
        arguments += [] if module.check_mode else ["--apply"]
    if params["until_reboot"] and not module.check_mode:
        arguments.append("--until-reboot")
    _code, report = document(module, params["program"], arguments, [0, 1, 5])
    tune = report["result"]["tune"]
    changes = [change for _number, change in changes_of(tune)]
    if not module.check_mode and not tune["kept"]:
        changes = []
    module.exit_json(
        changed=bool(changes),
        outcome=tune["outcome"],
        sentence=tune["sentence"],
        changes=changes,
        diff={"before": lines(changes, "from"), "after": lines(changes, "to")},
    )


if __name__ == "__main__":
    main()

#!/usr/bin/python
# MIT OR Apache-2.0
"""Module linerate_audit."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: linerate_audit
short_description: Report host settings, links and counters that slow transfers
description:
  - Runs C(linerate audit), which changes nothing.
options:
  program:
    description: Path or name of linerate on the host.
    type: str
    default: linerate
  min_severity:
    description: Leave out findings below this severity.
    type: str
    choices: [note, advice, warning, critical]
    default: note
  fail_on:
    description: Fail when there is a finding of this severity or above.
    type: str
    choices: [never, warning, critical]
    default: never
author:
  - The linerate authors (@linerate)
"""

EXAMPLES = r"""
- name: Report what slows transfers
  linerate.fleet.linerate_audit:
    min_severity: warning
    fail_on: critical
  register: audit
"""

RETURN = r"""
counts:
  description: Number of findings per severity.
  returned: always
  type: dict
findings:
  description: Findings, each with its rule, severity, text, source and remedy.
  returned: always
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.linerate.fleet.plugins.module_utils.linerate import document

FAILING = {"never": [], "warning": ["warning", "critical"], "critical": ["critical"]}


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "program": {"type": "str", "default": "linerate"},
            "min_severity": {"type": "str", "default": "note", "choices": ["note", "advice", "warning", "critical"]},
            "fail_on": {"type": "str", "default": "never", "choices": ["never", "warning", "critical"]},
        },
        supports_check_mode=True,
    )
    arguments = ["audit", "--no-history", "--json", "--min-severity", module.params["min_severity"]]
    _code, report = document(module, module.params["program"], arguments, [0, 1])
    result = {"changed": False, "counts": report["counts"], "findings": report["findings"]}
    failing = [finding for finding in report["findings"] if finding["severity"] in FAILING[module.params["fail_on"]]]
    if failing:
        texts = "; ".join(finding["text"] for finding in failing)
        module.fail_json(msg="{0} findings: {1}".format(len(failing), texts), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()

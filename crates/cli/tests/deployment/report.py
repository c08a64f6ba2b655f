"""Callback of Ansible that prints one JSON document: the result of each task per host, and the statistics."""

from __future__ import annotations

import json

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: report
type: stdout
short_description: One JSON document
description: Results of all tasks, and statistics.
"""


class CallbackModule(CallbackBase):
    """Collects the results."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "report"

    def __init__(self):
        super().__init__()
        self.tasks = []

    def collect(self, result):
        """Keeps the result of a task on a host."""
        if not self.tasks or self.tasks[-1]["id"] != result._task._uuid:
            self.tasks.append({"id": result._task._uuid, "name": result._task.name, "hosts": {}})
        self.tasks[-1]["hosts"][result._host.name] = result._result

    def v2_runner_on_ok(self, result):
        self.collect(result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.collect(result)

    def v2_runner_on_unreachable(self, result):
        self.collect(result)

    def v2_playbook_on_stats(self, stats):
        hosts = {host: stats.summarize(host) for host in sorted(stats.processed)}
        print(json.dumps({"tasks": self.tasks, "stats": hosts}))

# MIT OR Apache-2.0
"""Runs linerate, and reads its documents."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json


def document(module, program, arguments, codes):
    """Returns the JSON document of a command that ends with one of these codes."""
    command = [program] + arguments
    code, output, errors = module.run_command(command, environ_update={"LC_ALL": "C.UTF-8"})
    if code not in codes:
        module.fail_json(msg="{0} failed: {1}".format(" ".join(command), errors.strip()), rc=code, stderr=errors)
    try:
        return code, json.loads(output)
    except ValueError as error:
        module.fail_json(msg="{0} printed no JSON: {1}".format(" ".join(command), error), stdout=output, stderr=errors)

"""The client over a bad network: run it in the lab, where the other host is called far."""

import subprocess
import sys
import time
import unittest
from pathlib import Path

from client import greeting

HERE = Path(__file__).parent


class SlowNetwork(unittest.TestCase):
    def setUp(self):
        # The server runs on the other host.
        command = ["ip", "netns", "exec", "far", sys.executable, str(HERE / "server.py"), "9000"]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.assertEqual(self.server.stdout.readline(), "ready\n")

    def tearDown(self):
        self.server.kill()
        self.server.communicate()

    def test_greets_over_a_lossy_path(self):
        began = time.monotonic()
        for _ in range(20):
            self.assertEqual(greeting("far", 9000), "hello, hello")
        self.assertLess(time.monotonic() - began, 60)

    def test_gives_up_without_a_server(self):
        began = time.monotonic()
        with self.assertRaises(TimeoutError):
            greeting("far", 9001, timeout=1.0, attempts=2)
        self.assertLess(time.monotonic() - began, 10)


if __name__ == "__main__":
    unittest.main()

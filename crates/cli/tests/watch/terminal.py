"""Drives `linerate watch` on a pseudo-terminal: keys in, screen out; prints the results as JSON.

Arguments: how it is to end (quit, interrupt, terminate, abort), the program and its arguments.
"""

import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time

how, command = sys.argv[1], sys.argv[2:]
LIMIT = 20


def traffic():
    """Connection with traffic."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()

    def send():
        while True:
            client.sendall(b"x" * 10000)
            server.recv(1 << 20)
            time.sleep(0.02)

    threading.Thread(target=send, daemon=True).start()
    return listener.getsockname()[1]


def resize(descriptor, columns, rows):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


port = traffic()
go, ready = os.pipe()
child, terminal = pty.fork()
if child == 0:
    os.read(go, 1)
    os.execvp(command[0], command)
resize(terminal, 80, 24)
before = termios.tcgetattr(terminal)
os.write(ready, b"x")
seen = b""


def read(timeout):
    global seen
    if select.select([terminal], [], [], timeout)[0]:
        try:
            seen += os.read(terminal, 1 << 16)
        except OSError:
            return False
    return True


def wait_for(text, start=0):
    deadline = time.time() + LIMIT
    while text.encode() not in seen[start:]:
        if time.time() > deadline:
            return False
        read(0.1)
    return True


def press(keys, expected):
    """Presses keys; returns True when the expected text follows."""
    start = len(seen)
    os.write(terminal, keys)
    return wait_for(expected, start)


result = {
    "table": wait_for("LIMITED BY"),
    "flow": wait_for(f":{port}"),
    "alternate_screen": b"\x1b[?1049h" in seen,
    "raw": termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON) == 0,
    "help": press(b"?", "Page up and down"),
    "back": press(b"\x1b", "LIMITED BY"),
    "filter": press(b"/" + str(port).encode() + b"\r", f"[/{port}]"),
    "detail": press(b"\x1b[B\r", "Limited by:"),
    "frozen": press(b"\x1b ", "frozen"),
}
start = len(seen)
resize(terminal, 120, 30)
result["resized"] = wait_for("LOCAL", start)

if how == "quit":
    os.write(terminal, b"q")
elif how == "interrupt":
    os.write(terminal, b"\x03")
else:
    os.kill(child, {"terminate": signal.SIGTERM, "abort": signal.SIGQUIT}[how])
deadline = time.time() + LIMIT
ended = (0, 0)
while ended[0] == 0 and time.time() < deadline:
    read(0.05)
    ended = os.waitpid(child, os.WNOHANG)
result["ended"] = ended[0] == child
if not result["ended"]:
    os.kill(child, signal.SIGKILL)
result["code"] = os.WEXITSTATUS(ended[1]) if os.WIFEXITED(ended[1]) else -os.WTERMSIG(ended[1])
result["restored"] = termios.tcgetattr(terminal) == before
while select.select([terminal], [], [], 0.2)[0] and read(0):
    if not select.select([terminal], [], [], 0)[0]:
        break
tail = seen[-400:]
result["left"] = b"\x1b[?1049l" in tail and b"\x1b[?25h" in tail
print(json.dumps(result))

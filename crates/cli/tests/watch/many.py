"""Makes many loopback connections, runs `linerate watch` on them, and prints its cost as JSON.

Arguments: how many connections, how many seconds, the program, its form (none: the full screen). To be run in a network namespace of its own.
"""

import json
import os
import pty
import resource
import socket
import subprocess
import sys
import threading
import time

connections, seconds, program, form = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
resource.setrlimit(resource.RLIMIT_NOFILE, (2 * connections + 100, 2 * connections + 100))
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

pairs = []
for index in range(connections):
    if index % 4000 == 0:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
    client = socket.create_connection(listener.getsockname())
    pairs.append((client, listener.accept()[0]))


def move():
    """Moves data on each tenth connection once a second."""
    while True:
        for client, server in pairs[::10]:
            client.sendall(b"x" * 1000)
            server.recv(1 << 16)
        time.sleep(1)


threading.Thread(target=move, daemon=True).start()
once = subprocess.run([program, "watch", "--once", "--json", "--interval", "100ms"], stdout=subprocess.PIPE, text=True)
child, terminal = pty.fork()
if child == 0:
    os.execv(program, [program, "watch", "--count", str(seconds), *form])


def drain():
    """Reads the output, as a terminal does."""
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:
        pass


threading.Thread(target=drain, daemon=True).start()
_, status, usage = os.wait4(child, 0)
print(
    json.dumps(
        {
            "code": os.waitstatus_to_exitcode(status),
            "sockets": once.stdout.count('"cookie"'),
            "per_interval": (usage.ru_utime + usage.ru_stime) / seconds,
            "user": usage.ru_utime,
            "system": usage.ru_stime,
            "memory_kib": usage.ru_maxrss,
        }
    )
)

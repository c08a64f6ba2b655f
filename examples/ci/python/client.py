"""A client that asks a server for its greeting, and asks again when it is slow."""

import socket


def greeting(host, port, timeout=2.0, attempts=5):
    """Returns the server's line. Raises TimeoutError when no attempt was answered in time."""
    for _ in range(attempts):
        try:
            with socket.create_connection((host, port), timeout=timeout) as connection:
                connection.sendall(b"hello\n")
                with connection.makefile("r", encoding="utf-8") as lines:
                    return lines.readline().strip()
        except (TimeoutError, ConnectionError):
            continue
    raise TimeoutError(f"no answer from {host} in {attempts} attempts")

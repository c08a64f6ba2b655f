"""A server that answers each line with a greeting."""

import socketserver
import sys


class Greeter(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"hello, " + self.rfile.readline())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True


if __name__ == "__main__":
    with Server(("", int(sys.argv[1])), Greeter) as server:
        print("ready", flush=True)
        server.serve_forever()

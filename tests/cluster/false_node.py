# SPDX-License-Identifier: Apache-2.0
"""A node as a stranger would play it: connects to the relay's control port as docs/formats/stream.md has it, and prints
what the relay answers to a hello. It is a program that trust_cases.py runs on the cluster's network, and has Python's own
TLS. Argument: JSON in base64, with the relay's address, the CA, and the hello."""

import base64
import json
import os
import socket
import ssl
import struct
import sys

SERVER_NAME = "weft-relay-0.weft-relay.weft.svc"
PATIENCE = float(os.environ.get("WEFT_PATIENCE", "240"))


def send(connection, message):
    text = json.dumps(message).encode()
    connection.sendall(struct.pack("<I", len(text)) + text)


def receive(connection):
    """The next message; an empty one: the relay closed the connection."""
    def exactly(count):
        got = b""
        while len(got) < count:
            part = connection.recv(count - len(got))
            if not part:
                return b""
            got += part
        return got
    head = exactly(4)
    return json.loads(exactly(struct.unpack("<I", head)[0])) if head else {"type": "closed"}


def main(text):
    asked = json.loads(base64.b64decode(text))
    context = ssl.create_default_context(cadata=asked["authority"])
    with socket.create_connection((asked["address"], 4460), timeout=PATIENCE) as plain:
        with context.wrap_socket(plain, server_hostname=SERVER_NAME) as connection:
            send(connection, {"type": "offer", "versions": [2]})
            receive(connection)
            send(connection, asked["hello"])
            answer = receive(connection)
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])

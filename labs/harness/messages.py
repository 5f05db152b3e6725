"""Messages over a Unix socket, between the harness, the fork server and its keepers: JSON, with descriptors where they are needed."""

import json
import socket
import struct

_SIZE = struct.Struct("=I")   # before each message, the number of its bytes


def send(connection, message, descriptors=()):
    """Send a message, which is what JSON can hold, and copies of these descriptors. Raises OSError."""
    body = json.dumps(message).encode()
    if descriptors:
        socket.send_fds(connection, [_SIZE.pack(len(body))], descriptors)
        connection.sendall(body)
    else:
        connection.sendall(_SIZE.pack(len(body)) + body)


def receive(connection, most=0):
    """The next message, and its descriptors, of which there are at most `most`; (None, []) where the other side is gone."""
    try:
        if most:
            head, descriptors, _, _ = socket.recv_fds(connection, _SIZE.size, most)
        else:
            head, descriptors = connection.recv(_SIZE.size, socket.MSG_WAITALL), []
        body = connection.recv(_SIZE.unpack(head)[0], socket.MSG_WAITALL)
        return json.loads(body), descriptors
    except (OSError, struct.error, ValueError):
        return None, []

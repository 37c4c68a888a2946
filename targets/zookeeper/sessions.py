"""
Close a client's ZooKeeper session from outside, without the client's help.

The server's `dump` lists the session that owns each ephemeral node. The server draws a session's password from
java.util.Random, seeded with the session id and a constant, so that the password follows from the id. With both,
any process can connect as that session and close it. Its ephemeral nodes are gone at once, and the client learns
of the expiry when it connects again. This works for every ZooKeeper client.

Source:  Apache ZooKeeper 3.9, ZooKeeperServer.generatePasswd and superSecret; zookeeper.jute.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from typing import Final

from harness import limits
from harness.cleanup.process import until
from harness.launch import Address
from harness.model import PreconditionError
from targets.zookeeper.server import ask

SUPER_SECRET: Final = 0xB3415C00
PASSWORD_BYTES: Final = 16
CLOSE_SESSION: Final = -11
# The session timeout that our connection requests; the server limits it to its own bounds.
SESSION_TIMEOUT_MS: Final = 10_000
SESSION_LINE: Final = re.compile(r"^0x([0-9a-f]+):$")

_MASK_48: Final = (1 << 48) - 1
_MASK_64: Final = (1 << 64) - 1


def password_of(session_id: int) -> bytes:
    """
    Return a session's password of 16 bytes, derived as the server derives it.

    Args:
        session_id: As an unsigned 64-bit number.

    Source:  java.util.Random: a 48-bit linear congruence; nextBytes takes each int's lowest byte first.
    """
    state = ((session_id ^ SUPER_SECRET) ^ 0x5DEECE66D) & _MASK_48
    password = bytearray()
    while len(password) < PASSWORD_BYTES:
        state = (state * 0x5DEECE66D + 0xB) & _MASK_48
        password += struct.pack("<I", state >> 16)
    return bytes(password)


def owners_in(dump: str) -> dict[str, int]:
    """Parse the text of `dump`; return the owning session id of each ephemeral node's path (with chroot)."""
    owners: dict[str, int] = {}
    session: int | None = None
    _, _, text = dump.partition("Sessions with Ephemerals")
    text, _, _ = text.partition("Connections dump")
    for line in text.splitlines():
        head = SESSION_LINE.match(line)
        if head is not None:
            session = int(head[1], 16)
        elif line.startswith("\t/") and session is not None:
            owners[line[1:]] = session
    return owners


def owner_of(address: Address, path: str) -> int | None:
    """Return the session that owns the ephemeral node now, None if none does; the path includes the chroot."""
    return owners_in(ask(address, "dump")).get(path)


def close_session(address: Address, session_id: int) -> float:
    """
    Close the session as its own client would, and wait until its ephemeral nodes are gone.

    Returns:
        Milliseconds from connecting to the end of the last ephemeral node.

    Raises:
        PreconditionError: The server does not know the session, or its ephemeral nodes remain.
    """
    started = time.monotonic()
    with socket.create_connection((address.host, address.port), limits.SERVICE_ANSWER_S_MAX) as connection:
        connection.sendall(_framed(_connect_request(session_id)))
        answer = _read_frame(connection)
        _, timeout_ms, known = struct.unpack_from(">iiq", answer) if len(answer) >= 16 else (0, 0, 0)
        if timeout_ms <= 0 or known & _MASK_64 != session_id:
            raise PreconditionError(
                f"session 0x{session_id:x} at {address}: the server does not know it (timeout {timeout_ms} ms); "
                "expected a living session"
            )
        connection.sendall(_framed(struct.pack(">ii", 1, CLOSE_SESSION)))
        if not until(
            lambda: session_id not in owners_in(ask(address, "dump")).values(), limits.CONDITION_WAIT_S_MAX
        ):
            raise PreconditionError(
                f"session 0x{session_id:x} at {address}: its ephemerals are still there; expected them gone"
            )
    return (time.monotonic() - started) * 1000


def _connect_request(session_id: int) -> bytes:
    """Encode jute's ConnectRequest: protocol version 0, last zxid 0 (never ahead of the server), id, password."""
    signed = session_id - (1 << 64) if session_id >> 63 else session_id
    password = password_of(session_id)
    head = struct.pack(">iqiqi", 0, 0, SESSION_TIMEOUT_MS, signed, len(password))
    return head + password + b"\0"


def _framed(body: bytes) -> bytes:
    """Prefix the body with its length, as ZooKeeper's wire protocol requires."""
    return struct.pack(">i", len(body)) + body


def _read_frame(connection: socket.socket) -> bytes:
    """Read one frame; return a part of it, or b"", if the server closes the connection."""
    head = _read_exactly(connection, 4)
    return _read_exactly(connection, struct.unpack(">i", head)[0]) if len(head) == 4 else b""


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            break
        data += part
    return data

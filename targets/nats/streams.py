"""
The names of streams and of members: a partition is a stream, TOPIC-PARTITION, and its only subject has that name.

A stream that the harness did not make has a name of any kind; it is a topic with one partition.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

# A stream's name is part of subjects and of paths: NATS takes no blank, dot, star, greater-than or slash in it.
_OURS: Final = re.compile(r"(?P<topic>.+)-(?P<partition>0|[1-9][0-9]{0,8})")

# The letters of a member's id, in their order (events.go).
_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PEER_LETTERS: Final = 8


def peer_of(server: str) -> str:
    """Return a server's id in every Raft group, which is a hash of its name."""
    return "".join(
        _LETTERS[byte % len(_LETTERS)] for byte in hashlib.sha256(server.encode()).digest()[:_PEER_LETTERS]
    )


def stream_of(topic: str, partition: int) -> str:
    """Return the stream of a topic's partition, which is its subject too."""
    return f"{topic}-{partition}"


def place_of(stream: str) -> tuple[str, int]:
    """Return the (topic, partition) of a stream."""
    found = _OURS.fullmatch(stream)
    return (stream, 0) if found is None else (found["topic"], int(found["partition"]))

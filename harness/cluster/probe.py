"""
Asks a node, over Kafka's protocol, whether it serves and whether it leads a partition.

ZooKeeper names a leader before that broker knows it, and a broker is registered before it serves. A broker also
leads before it names itself as leader to clients: the controller sends it LeaderAndIsr first, then UpdateMetadata.

Source:  Kafka's ApiVersionsRequest.json v0, MetadataRequest.json v1 and ListOffsetsRequest.json v1, which every
         release since 0.10.1 accepts.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

ANSWER_S_MAX: Final = 2.0
_API_VERSIONS: Final = (18, 0)
_METADATA: Final = (3, 1)
_LIST_OFFSETS: Final = (2, 1)
_CLIENT: Final = b"fencepost-probe"
_EARLIEST: Final = -2
_ANSWER_BYTES_MAX: Final = 1024 * 1024


def serves(address: str) -> bool:
    """Return True if a node answers at host:port."""
    answer = _ask(address, _API_VERSIONS, b"")
    return answer is not None and _short(answer, 0) == 0


def leads(address: str, topic: str, partition: int) -> bool:
    """Return True if the node at that address leads the partition, and names itself to clients as its leader."""
    name = topic.encode()
    body = struct.pack(f">iih{len(name)}siiq", -1, 1, len(name), name, 1, partition, _EARLIEST)
    answer = _ask(address, _LIST_OFFSETS, body)
    # The answer has one topic with its name, and one partition with its number and error.
    if answer is None or _short(answer, 4 + 2 + len(name) + 4 + 4) != 0:
        return False
    return named_leader(address, topic, partition) == address


def named_leader(address: str, topic: str, partition: int) -> str:
    """Return the leader's "host:port" according to a node; "" if it names none or does not answer."""
    name = topic.encode()
    answer = _ask(address, _METADATA, struct.pack(f">ih{len(name)}s", 1, len(name), name))
    try:
        return "" if answer is None else _named(_Reader(answer), partition)
    except (struct.error, UnicodeDecodeError):
        return ""


def _named(answer: _Reader, partition: int) -> str:
    """Return the partition's leader in a metadata answer about one topic."""
    addresses: dict[int, str] = {}
    for _ in range(answer.number(">i")):
        node = answer.number(">i")
        addresses[node] = f"{answer.text()}:{answer.number('>i')}"
        answer.text()  # rack
    answer.number(">i")  # controller
    for _ in range(answer.number(">i")):
        answer.number(">h")  # error
        answer.text()
        answer.number(">b")  # whether it is internal
        for _ in range(answer.number(">i")):
            answer.number(">h")  # error
            found, leader = answer.number(">i"), answer.number(">i")
            if found == partition:
                return addresses.get(leader, "")
            for _ in range(2):  # replicas, ISR
                answer.skip(4 * answer.number(">i"))
    return ""


class _Reader:
    """Reads values from an answer in order; raises struct.error if the answer ends too soon."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._offset = 0

    def number(self, layout: str) -> int:
        (found,) = struct.unpack_from(layout, self._answer, self._offset)
        self._offset += struct.calcsize(layout)
        return int(found)

    def text(self) -> str:
        length = max(self.number(">h"), 0)
        (found,) = struct.unpack_from(f"{length}s", self._answer, self._offset)
        self._offset += length
        return bytes(found).decode()

    def skip(self, size: int) -> None:
        self._offset += size


def _ask(address: str, api: tuple[int, int], body: bytes) -> bytes | None:
    """Send a request; return the body of the answer, None if there is none in time."""
    head = struct.pack(f">hhih{len(_CLIENT)}s", *api, 0, len(_CLIENT), _CLIENT)
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), ANSWER_S_MAX) as connection:
            connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
            with connection.makefile("rb") as stream:
                (length,) = struct.unpack(">i", stream.read(4))
                return stream.read(min(length, _ANSWER_BYTES_MAX))[4:]
    except (OSError, struct.error):
        return None


def _short(answer: bytes, offset: int) -> int | None:
    try:
        (found,) = struct.unpack_from(">h", answer, offset)
    except struct.error:
        return None
    return int(found)

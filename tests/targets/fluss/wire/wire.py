"""Messages and frames of Fluss, written field by field as FlussApi.proto numbers them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harness.target.length_prefix import LENGTH
from targets.fluss.tables import number_of
from targets.fluss.wire.frames import ANSWER, REQUEST, Api, Type
from targets.fluss.wire.protobuf import message

# (topic, bucket).
Place = tuple[str, int]


def fetch(places: Mapping[Place, int], follower: int = 2) -> bytes:
    """Return a FetchLog, with each bucket in a table of its own."""
    tables = (
        message([(1, number_of(topic)), (2, 0), (4, message([(2, bucket), (3, offset), (4, 1024)]))])
        for (topic, bucket), offset in places.items()
    )
    return message([(1, follower), (2, 1024), *((3, table) for table in tables)])


def bucket_of(place: Place) -> bytes:
    """Return a PbTableBucket."""
    return message([(1, number_of(place[0])), (3, place[1])])


def command(place: Place, leader: int, epoch: int, isr: Sequence[int], *, packed: bool = False) -> bytes:
    """Return what a NotifyLeaderAndIsr says of one bucket."""
    told = [(6, bytes(isr))] if packed else [(6, member) for member in isr]
    return message([(1, b"path"), (2, bucket_of(place)), (3, leader), (4, epoch), (5, 1), *told, (7, 0)])


def commands(*each: bytes) -> bytes:
    """Return a NotifyLeaderAndIsr."""
    return message([(1, 0), *((2, one) for one in each)])


def learned(codes: Iterable[tuple[Place, int]]) -> bytes:
    """Return the answer to a NotifyLeaderAndIsr: a code for each bucket, left out if it is 0."""
    return message(
        (1, message([(1, bucket_of(place)), *([(2, code), (3, b"why")] if code else [])])) for place, code in codes
    )


def request(key: int, number: int, body: bytes = b"", version: int = 0) -> bytes:
    """Return the frame of a request."""
    return LENGTH.pack(REQUEST.size + len(body)) + REQUEST.pack(key, version, number) + body


def answer(number: int, body: bytes = b"", kind: int = Type.SUCCESS) -> bytes:
    """Return the frame of an answer."""
    return LENGTH.pack(ANSWER.size + len(body)) + ANSWER.pack(kind, number) + body


def error(number: int, code: int, text: str, kind: Type = Type.ERROR) -> bytes:
    """Return the frame of an ErrorResponse."""
    return answer(number, message([(1, code), (2, text.encode())]), kind)


FETCH = request(Api.FetchLog, 7, fetch({("log", 0): 5, ("log", 1): 300, ("u", 0): 2**40}))
COMMANDS = request(
    Api.NotifyLeaderAndIsr, 8, commands(command(("log", 0), 1, 3, [1, 2]), command(("log", 1), -1, 4, [2]))
)

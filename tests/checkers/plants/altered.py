"""Records and batches of final logs that are not as they were sent, even if all replicas agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.logs.record import NO_TIMESTAMP, Record, sent_digest
from harness.model import Kind, Source
from tests.checkers.plants.changes import Change, replicas_of, resends, sent_again
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant

ALTERED: Final = Kind.ALTERED
_AT: Final = 1_700_000_000_000  # a timestamp
# What is found in local-kafka-7415a as it is.
_7415A: Final = (Kind.LOST, Kind.NOT_REPLICATED, Kind.UNPROMISED)


@plant("timestamp-altered-on-all", "local-kip101-1", ALTERED)
def timestamp_altered(edit: Edit) -> None:
    edit.redigest(3, sent_digest("m2.0", _AT))


@plant("timestamp-altered-on-all-kafka", "kafka-kip101-1", ALTERED)
def timestamp_altered_kafka(edit: Edit) -> None:
    edit.redigest(4, sent_digest("m2.0", _AT))


@plant("record-altered-on-all-sim", "sim-clean-8", ALTERED)
def altered_sim(edit: Edit) -> None:
    edit.tell_digests().redigest(4, "c0ffee00c0ffee00")


@plant("record-altered-on-all-by-resending-client", "kafka-kip101-2", ALTERED, Kind.PERMITTED)
def altered_resending(edit: Edit) -> None:
    """The client told what it sent, so it does not matter which client it was."""
    resends(edit).tell_digests().redigest(2, "c0ffee00c0ffee00")


@plant("record-altered-on-one", "local-kip101-2", ALTERED, Kind.DIVERGED, Kind.PERMITTED)
def altered_on_one(edit: Edit) -> None:
    edit.redigest(3, "c0ffee00c0ffee00", "B")


@plant("record-altered-in-the-middle-of-a-batch", "local-kafka-7415a", ALTERED, *_7415A)
def altered_in_batch(edit: Edit) -> None:
    edit.redigest(2, "c0ffee00c0ffee00")


@plant("record-with-a-timestamp-of-its-client-lawful", "local-kip101-1")
def own_timestamp(edit: Edit) -> None:
    resends(edit).redigest(3, sent_digest("m2.0", _AT)).tell_digests()


@plant("record-in-format-0-lawful", "kafka-kip101-1")
def format_0(edit: Edit) -> None:
    """The client sent a timestamp, which message format 0 does not keep."""
    edit.redigest(4, sent_digest("m2.0", _AT)).tell_digests().redigest(4, sent_digest("m2.0"))
    for node in replicas_of(edit):
        edit.change(edit.batch_at(node, 4), magic=0, epoch=-1)


@plant("record-sent-twice-with-two-timestamps-lawful", "local-kip101-1")
def two_timestamps(edit: Edit) -> None:
    resends(edit).tell_digests()
    sent_again(edit, "m3", "info", "no answer")
    again = edit.find(Source.CLIENT, "produce", "client-99", "invoke")
    edit.change(again, digest=sent_digest("m3.0", _AT))
    edit.put_everywhere(4, (5, sent_digest("m3.0", _AT), "m3.0"))


@plant("record-of-an-unknown-client-lawful", "kafka-kip101-2", Kind.PERMITTED)
def unknown_digest(edit: Edit) -> None:
    """An older history of a client that sets a timestamp does not tell which."""
    resends(edit).redigest(2, sent_digest("m3.1", _AT))


@plant("bytes-altered-on-one", "local-kip101-1", ALTERED)
def bytes_altered(edit: Edit) -> None:
    edit.change(edit.batch_at("A", 0), crc=1)


@plant("bytes-altered-on-one-kafka", "kafka-kip101-1", ALTERED)
def codec_altered(edit: Edit) -> None:
    edit.change(edit.batch_at("B", 5), codec="gzip")


@plant("bytes-altered-on-one-sim", "sim-clean-8", ALTERED)
def bytes_altered_sim(edit: Edit) -> None:
    edit.change(edit.batch_at("C", 2), crc=1)


@plant("bytes-of-another-format-lawful", "kafka-kip101-1")
def bytes_converted(edit: Edit) -> None:
    """A replica of an older message format converts what it copies."""
    edit.change(edit.batch_at("A", 4), magic=1, crc=1, epoch=-1)


# --- keys and headers, and lawful twins --------------------------------------------------------------------------
def _digest(text: str, key: bytes | None = None, headers: Sequence[tuple[bytes, bytes | None]] = ()) -> str:
    """Return the digest of a record with a key or headers, and without a timestamp."""
    return Record(offset=0, timestamp=NO_TIMESTAMP, key=key, value=text.encode(), headers=tuple(headers)).digest


def _stored(offset: int, digest: str) -> Change:
    """Return a change in which all replicas have another digest than the client told."""
    return lambda edit: edit.tell_digests().redigest(offset, digest)


def _sent_so(offset: int, digest: str) -> Change:
    """Return a change in which the client sent the record so that it has that digest, and told it."""
    return lambda edit: resends(edit).redigest(offset, digest).tell_digests()


KEYED, HEADED = _digest("m2.0", b"k"), _digest("m2.0", None, ((b"h", b"1"),))
PARTS = [
    plant("key-altered-on-all", "local-kip101-1", Kind.ALTERED)(_stored(3, KEYED)),
    plant("key-altered-on-all-lawful", "local-kip101-1")(_sent_so(3, KEYED)),
    plant("key-altered-on-all-kafka", "kafka-kip101-1", Kind.ALTERED)(_stored(4, KEYED)),
    plant("key-altered-on-all-kafka-lawful", "kafka-kip101-1")(_sent_so(4, KEYED)),
    plant("key-altered-on-all-sim", "sim-clean", Kind.ALTERED)(_stored(2, KEYED)),
    plant("key-altered-on-all-sim-lawful", "sim-clean")(_sent_so(2, KEYED)),
    plant("headers-altered-on-all", "local-kip101-1", Kind.ALTERED)(_stored(3, HEADED)),
    plant("headers-altered-on-all-lawful", "local-kip101-1")(_sent_so(3, HEADED)),
    plant("headers-altered-on-all-kafka", "kafka-kip101-1", Kind.ALTERED)(_stored(4, HEADED)),
    plant("headers-altered-on-all-kafka-lawful", "kafka-kip101-1")(_sent_so(4, HEADED)),
    plant("headers-altered-on-all-sim", "sim-clean-8", Kind.ALTERED)(_stored(2, HEADED)),
    plant("headers-altered-on-all-sim-lawful", "sim-clean-8")(_sent_so(2, HEADED)),
    plant("timestamp-altered-on-all-lawful", "local-kip101-1")(_sent_so(3, sent_digest("m2.0", _AT))),
    plant("timestamp-altered-on-all-kafka-lawful", "kafka-kip101-1")(_sent_so(4, sent_digest("m2.0", _AT))),
    plant("timestamp-altered-on-all-sim", "sim-clean-8", Kind.ALTERED)(_stored(2, sent_digest("m2.0", _AT))),
    plant("timestamp-altered-on-all-sim-lawful", "sim-clean-8")(_sent_so(2, sent_digest("m2.0", _AT))),
    plant("record-altered-on-all-sim-lawful", "sim-clean-8")(_sent_so(4, "c0ffee00c0ffee00")),
]

"""
Final logs hold what clients sent, as they sent it, and each record once.

Replicas that agree may all be wrong: the leader wrote it so. These rules compare logs with what clients sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.definition import Definition
from checkers.facts.abridged import Abridged
from checkers.facts.compacted import may_have_a_horizon
from checkers.facts.places import Place, places_of
from checkers.facts.sent import Sent, sent_digests, sent_values
from checkers.facts.view import final_logs, key_of, offsets_text, setup_of
from harness.events import Batch
from harness.model import Anomaly, Kind, Op, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.DUPLICATE,
        formula="|{o : some final log holds v at o}| > |{produce(v) invoked, not failed}|, if clients send once "
        "or v's producer is idempotent; "
        "or one batch holds v twice, or one log holds v at o in two batches, whatever clients do",
        words="A record stands more often in the logs than clients sent it. If clients may send it again, and its "
        "producer is not idempotent, that is at-least-once delivery, and only a record twice in one batch or at "
        "one offset is wrong.",
        evidence="log: snapshot, batch; client: produce; runner: setup (sends_once, idempotent)",
        unchecked="",
        source="Kafka Replication Design V3: a follower appends what it fetched, once, at the same offset",
    ),
    Definition(
        kind=Kind.PHANTOM,
        formula="a final log holds v, and no produce(v) was invoked, or every produce(v) failed",
        words="A log holds a record that no client sent, or one whose produce surely failed. Markers of "
        "transactions are the broker's own and do not count.",
        evidence="log: snapshot, batch; client: produce",
        unchecked="",
        source="Jepsen: kafka, garbage reads and aborted reads",
    ),
    Definition(
        kind=Kind.ALTERED,
        formula="a final log holds v with digest d, and produce(v) was invoked with digests D: d not in D; or two "
        "logs hold the same records in a batch of the same offsets and format, with another CRC or codec",
        words="A record's key, headers or timestamp are not those that were sent, even if all replicas agree; or "
        "replicas hold the same records in other bytes, though a follower copies its leader's bytes. Message "
        "format 0 has no timestamp, so its records are not compared with what was sent.",
        evidence="log: batch; client: produce (digest)",
        unchecked="A history without digests of what a client other than the raw one sent: then only the bytes of "
        "replicas are compared.",
        source="KIP-32; Apache Kafka, DefaultRecordBatch.java: the CRC covers all but offset and epoch",
    ),
)
# Message format 0 drops the timestamp that a client sent (KIP-32).
_WITHOUT_TIMESTAMP: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrong:
    """
    One value that is wrong in the same way at some places.

    Attributes:
        text: what is wrong, for the sentence.
        proof: ops besides the batches that prove it.
    """

    kind: Kind
    value: str | None
    text: str
    places: Sequence[Place]
    proof: tuple[int, ...] = ()


def contents(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find records of final logs that no client sent, that are not as they were sent, or that stand there twice.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for all records that are wrong in the same way in the same logs.

    Source:  Jepsen's checks of Kafka: duplicates, garbage reads, aborted reads.
    """
    setup = setup_of(ops)
    sends_once = setup is not None and bool(setup.sends_once)
    sent, digests = sent_values(ops), sent_digests(ops)
    groups: dict[tuple[Kind, str, tuple[str, ...]], list[_Wrong]] = {}
    for value, places in places_of(ops).items():
        known = sent.get(value or "")
        for wrong in (
            *_as_sent(value, places, known, sends_once=sends_once),
            *_altered(value, places, known, digests.get(value or "", frozenset())),
        ):
            nodes = tuple(dict.fromkeys(place.node for place in wrong.places))
            groups.setdefault((wrong.kind, wrong.text, nodes), []).append(wrong)
    return [
        *(_anomaly(ops, kind, text, nodes, group) for (kind, text, nodes), group in groups.items()),
        *_other_bytes(ops),
    ]


def _as_sent(
    value: str | None, places: Sequence[Place], sent: Sent | None, *, sends_once: bool
) -> Iterator[_Wrong]:
    """Yield a value that no client sent, or that is there more often than it was sent."""
    if sent is None or value is None:
        yield _Wrong(kind=Kind.PHANTOM, value=value, text="which no client sent", places=places)
    elif not sent.appends_max:
        text, proof = "though its produce surely failed", tuple(op.index for op in sent.failed)
        yield _Wrong(kind=Kind.PHANTOM, value=value, text=text, places=places, proof=proof)
    elif (sends_once or sent.numbered) and len({place.offset for place in places}) > sent.appends_max:
        text, proof = "more often than clients sent it", tuple(op.index for op in sent.invokes)
        yield _Wrong(kind=Kind.DUPLICATE, value=value, text=text, places=places, proof=proof)
    elif twice := _twice(places):
        text = "twice in one batch or at one offset"
        yield _Wrong(kind=Kind.DUPLICATE, value=value, text=text, places=twice)


def _altered(
    value: str | None, places: Sequence[Place], sent: Sent | None, digests: frozenset[str]
) -> Iterator[_Wrong]:
    """Yield a value that is not stored as it was sent; nothing if it is not known how it was sent."""
    if sent is None or not digests:
        return
    other = [p for p in places if p.digest not in digests and p.magic != _WITHOUT_TIMESTAMP]
    if other:
        text = "not as it was sent: its key, headers or timestamp differ"
        proof = tuple(op.index for op in sent.invokes)
        yield _Wrong(kind=Kind.ALTERED, value=value, text=text, places=other, proof=proof)


def _twice(places: Sequence[Place]) -> list[Place]:
    """Return the places of a value that one batch holds twice, or that one log holds twice at one offset."""
    if (
        len({place.batch for place in places})
        == len({(place.node, place.offset) for place in places})
        == len(places)
    ):
        return []
    batches: dict[int, Place] = {}
    offsets: dict[tuple[str, int], Place] = {}
    found: list[Place] = []
    for place in places:
        before = batches.setdefault(place.batch, place), offsets.setdefault((place.node, place.offset), place)
        found += [each for first in before if first is not place for each in (first, place)]
    return list(dict.fromkeys(found))


def _anomaly(ops: Sequence[Op], kind: Kind, text: str, nodes: tuple[str, ...], group: Sequence[_Wrong]) -> Anomaly:
    topic, partition = key_of(ops)
    first = group[0]
    ranges = ranges_of(place.offset for wrong in group for place in wrong.places)
    what = "a record without a value" if first.value is None else repr(first.value)
    here = ranges_of(place.offset for place in first.places)
    where = offsets_text(here) + ("" if here == ranges else f" (and others at {offsets_text(ranges)})")
    verb = "holds" if len(nodes) == 1 else "hold"
    return Anomaly(
        kind=kind,
        topic=topic,
        partition=partition,
        ranges=ranges,
        nodes=nodes,
        sentence=f"{_and(nodes)} {verb} {what} at {where}, {text}.",
        proof=tuple(sorted({*(p.batch for wrong in group for p in wrong.places), *_proofs(group)})),
    )


def _proofs(group: Iterable[_Wrong]) -> Iterator[int]:
    for wrong in group:
        yield from wrong.proof


def _and(nodes: Sequence[str]) -> str:
    return nodes[0] if len(nodes) == 1 else f"{', '.join(nodes[:-1])} and {nodes[-1]}"


def _other_bytes(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """
    Yield batches that hold another replica's records in other bytes: a follower copies its leader's bytes.

    A batch of another message format was converted. The CRC does not cover offset and epoch. Compaction writes
    into a batch when its tombstones may go, on each replica by itself.
    """
    topic, partition = key_of(ops)
    first: dict[tuple[int, int, int], tuple[str, int, Batch]] = {}
    for node, log in final_logs(ops).items():
        for index, batch in log.batches:
            if batch.last < log.start or isinstance(batch, Abridged):
                continue
            other, before, twin = first.setdefault((batch.base, batch.last, batch.magic), (node, index, batch))
            unlike = batch.crc != twin.crc or batch.codec != twin.codec
            same = other != node and batch.records == twin.records
            if unlike and same and not (batch.codec == twin.codec and may_have_a_horizon(ops, batch)):
                span = (batch.base, max(batch.last, batch.base) + 1)
                what = "CRC" if batch.codec == twin.codec else "codec"
                yield Anomaly(
                    kind=Kind.ALTERED,
                    topic=topic,
                    partition=partition,
                    ranges=(span,),
                    nodes=(other, node),
                    sentence=f"{other} and {node} hold the same records at {offsets_text([span])}, and the {what} "
                    f"of their batch differs: one of them changed its bytes.",
                    proof=tuple(sorted((before, index))),
                )

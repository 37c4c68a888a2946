"""
A replica that stores each record twice has the same in both stores, and groups agree in each store.

A store beside the served log, as a Raft log, may hold several records of one offset, of which the last was taken;
so it contradicts another only where it has records of an offset, and none that the other has there. What it does
not have it may have thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from checkers.definition import Definition
from checkers.facts.fact import fact
from checkers.facts.moments import anomaly
from checkers.facts.outages import outages
from checkers.facts.rot import flipped_at
from checkers.facts.view import Record, final_logs, offsets_text, other_stores
from checkers.rules.exited import gone
from harness.events import Healed
from harness.model import Anomaly, Kind, Op, OpType, events_of, ranges_of

# A store's records by offset.
_Held = Mapping[int, Sequence[Record]]

KINDS: Final = (
    Definition(
        kind=Kind.STORES_DIFFER,
        formula="log(n)[o] is there, at or above the log's start, store(n, s)[o] is not empty, and no record "
        "of it has the content of log(n)[o]; or, after healed, store(n, s)[o] and store(m, s)[o] are not empty "
        "and have no record in common; and no fault flipped a byte of a record at o on n or m",
        words="Two stores of one replica hold different records at one offset, or the same store of two replicas "
        "does.",
        evidence="log: batch, with the name of its store; runner: healed; nemesis: faults",
        unchecked="An offset of which a store has no record. A node that is down at the end, or ended itself, "
        "is not compared with others.",
        source="Ongaro and Ousterhout, Raft, State Machine Safety",
    ),
)


def stores(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find offsets at which two stores of one replica, or one store of two replicas, hold different records.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each node and store, then one for each pair of nodes and store, with all offsets.

    Source:  Raft, State Machine Safety: if a server has applied an entry at an index, no other applies another.
    """
    return [*_within(ops), *_across(ops)] if _held(ops) else []


@fact
def _held(ops: Sequence[Op]) -> Mapping[str, Mapping[str, _Held]]:
    """Return node -> store -> what the store holds."""
    found: dict[str, dict[str, dict[int, list[Record]]]] = {}
    for node, theirs in other_stores(ops).items():
        for store, batches in theirs.items():
            held = found.setdefault(node, {}).setdefault(store, {})
            for index, batch in batches:
                for offset, digest, value in batch.records:
                    record = Record(offset=offset, digest=digest, value=str(value), epoch=batch.epoch, index=index)
                    held.setdefault(offset, []).append(record)
    return found


def _within(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield each other store that contradicts its node's log."""
    for node, theirs in _held(ops).items():
        log = final_logs(ops).get(node)
        served = {o: (each,) for o, each in log.records.items() if o >= log.start} if log is not None else {}
        for store, held in theirs.items():
            unlike = [o for o in _unlike(served, held) if not flipped_at(ops, node, o)]
            if unlike:
                first, ranges = unlike[0], ranges_of(unlike)
                text = f"{node}'s two stores differ at {offsets_text(ranges)}: its log holds "
                text += f"{served[first][-1].value!r}, its {store} log {_values(held[first])}"
                yield _anomaly(ops, text, [node], unlike, (served, held))


def _across(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield each two nodes of which one store differs, once the cluster is whole."""
    if not any(op.type is OpType.OK for op, _ in events_of(ops, Healed)):
        return
    away = {outage.node for outage in outages(ops) if outage.back is None} | gone(ops)
    there = {node: theirs for node, theirs in _held(ops).items() if node not in away}
    for left, right in combinations(there, 2):
        for store in there[left].keys() & there[right].keys():
            ours, others = there[left][store], there[right][store]
            found = (
                o for o in _unlike(ours, others) if not flipped_at(ops, left, o) and not flipped_at(ops, right, o)
            )
            unlike = [*found]
            if unlike:
                first, ranges = unlike[0], ranges_of(unlike)
                text = f"the {store} logs of {left} and {right} differ at {offsets_text(ranges)}: that of {left} "
                text += f"holds {_values(ours[first])}, that of {right} {_values(others[first])}"
                yield _anomaly(ops, text, [left, right], unlike, (ours, others))


def _unlike(left: _Held, right: _Held) -> list[int]:
    """Return the offsets at which both have records, and none in common."""
    return sorted(
        offset
        for offset in left.keys() & right.keys()
        if {each.digest for each in left[offset]}.isdisjoint(each.digest for each in right[offset])
    )


def _values(records: Sequence[Record]) -> str:
    return " and ".join(dict.fromkeys(repr(each.value) for each in records))


def _anomaly(
    ops: Sequence[Op], text: str, nodes: Sequence[str], unlike: Sequence[int], both: tuple[_Held, _Held]
) -> Anomaly:
    ranges = ranges_of(unlike)
    where = f" (at offset {unlike[0]})" if len(unlike) > 1 else ""
    proof = {each.index for held in both for offset in unlike for each in held[offset]}
    return anomaly(ops, Kind.STORES_DIFFER, text + where, proof, nodes, None, ranges)

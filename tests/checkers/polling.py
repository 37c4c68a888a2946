"""Consumers for recorded runs: polls as the leader of the time would have answered them, and single polls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from checkers.facts.acked import acked_records, written_by
from checkers.facts.copies import copies_of
from checkers.facts.moments import moments
from checkers.facts.replica_log import Replay
from checkers.facts.view import final_logs, setup_of
from harness.model import Op, OpType, PartOps, Source
from tests.checkers.plants.changes import place
from tests.checkers.plants.edit import Edit, Line

CONSUMER: Final = "client-50"
Records = Sequence[Sequence[Any]]


class Answer(NamedTuple):
    """What a leader would have answered after an op."""

    after: int
    node: str
    records: list[list[Any]]
    high_watermark: int


# --- single polls --------------------------------------------------------------------------------------------
def poll(
    edit: Edit,
    after: Line,
    node: str,
    records: Records,
    high_watermark: int,
    *,
    position: int | None = None,
    process: str = CONSUMER,
    sought: bool = False,
    before: bool = False,
) -> Line:
    """Insert a poll after (or before) a line, from its first record on or a given position; return its ok."""
    asked: dict[str, Any] = {**place(edit), "node": node}
    asked["position"] = position if position is not None else records[0][0] if records else 0
    if sought:
        asked["sought"] = True
    invoke = edit.insert(after, Source.CLIENT, "poll", process, "invoke", before=before, **asked)
    answer = {"records": [list(record) for record in records], "high_watermark": high_watermark}
    return edit.insert(invoke, Source.CLIENT, "poll", process, "ok", **asked, **answer)


def poll_refused(edit: Edit, after: Line, node: str, position: int, *, process: str = CONSUMER) -> Line:
    """Insert a poll that fails; return its fail."""
    asked = {**place(edit), "node": node, "position": position}
    invoke = edit.insert(after, Source.CLIENT, "poll", process, "invoke", **asked)
    return edit.insert(invoke, Source.CLIENT, "poll", process, "fail", **asked, error="NOT_LEADER_OR_FOLLOWER")


# --- consumers that poll a whole run -------------------------------------------------------------------------
def answers(ops: Sequence[Op]) -> Iterator[Answer]:
    """Yield what each leader would have answered, from offset 0, after each of its own events."""
    ops = PartOps(ops)
    values = _values(ops)
    replay = Replay(copies_of(ops).in_order)
    for moment in moments(ops):
        op, after = moment.op, moment.after
        if after.role != "leader" or after.high_watermark is None:
            continue
        replay.to(op.index)
        log = replay.logs.get(op.process)
        records: list[list[Any]] = []
        for first, end, origin in log.pieces if log else ():
            records += [[o, values.get((o, origin))] for o in range(first, min(end, after.high_watermark))]
        if all(value is not None for _, value in records):
            yield Answer(op.index, op.process, records, after.high_watermark)


def _values(ops: PartOps) -> Mapping[tuple[int, int | None], str]:
    """Return the value of each record, by its offset and the index of the leader's append."""
    found: dict[tuple[int, int | None], str] = {}
    for acked in acked_records(ops):
        written = written_by(ops, acked)
        if written is not None:
            found[acked.offset, written.index] = acked.value
    for node, log in final_logs(ops).items():
        for offset, record in log.records.items():
            changes = copies_of(ops).changes(offset).get(node, ())
            if changes:
                found[offset, changes[-1].origin] = record.value
    return found


def consumed(ops: Sequence[Op], *, anew: bool = False) -> list[Op]:
    """
    Return a run with a consumer that polls the leader whenever it reports something.

    Args:
        ops: the run; its brokers report events.
        anew: the consumer seeks to 0 before each poll; else it reads on, and is reset where the log is shorter.
    """
    inserted: dict[int, list[dict[str, Any]]] = {}
    setup = setup_of(ops)
    assert setup is not None
    position, begun = 0, False
    for answer in answers(ops):
        sought = anew or not begun or position > answer.high_watermark
        position = 0 if anew else min(position, answer.high_watermark)
        begun = True
        asked = {
            "topic": setup.topic,
            "partition": setup.partition,
            "node": answer.node,
            "position": position,
            **({"sought": True} if sought else {}),
        }
        records = [record for record in answer.records if record[0] >= position]
        told = {"records": records, "high_watermark": answer.high_watermark}
        inserted.setdefault(answer.after, []).append({"invoke": asked, "ok": asked | told})
        position = records[-1][0] + 1 if records else position
    return renumbered(_with(ops, inserted))


def _with(ops: Sequence[Op], inserted: Mapping[int, Sequence[Mapping[str, Any]]]) -> Iterator[Line]:
    over = next((op.index for op in ops if (op.source, op.f) == (Source.RUNNER, "done")), len(ops))
    for op in ops:
        line = json.loads(op.to_json())
        yield line
        for call in inserted.get(op.index, ()) if op.index < over else ():
            for type_ in (OpType.INVOKE, OpType.OK):
                about = {"source": "client", "process": CONSUMER, "type": type_.value, "f": "poll"}
                yield line | about | {"value": call[type_.value]}


def renumbered(lines: Iterable[Line]) -> list[Op]:
    """Return lines as ops, with indexes that follow each other."""
    return [Op.from_json(json.dumps({**line, "index": index})) for index, line in enumerate(lines)]

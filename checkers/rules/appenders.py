"""Only the leader of an epoch appends as leader in it, as its own process reported that it leads."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.moments import Moment, anomaly, moments
from checkers.facts.view import at
from harness.events import Append, Leader
from harness.model import Anomaly, Kind, Op, events_of


def appenders(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find appends as leader by a node that follows, has not led in this process, or does not lead that epoch.

    Batches of `hw`, and of message formats without epochs, have epoch -1: only the role shows who may append.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One TWO_LEADERS anomaly for each node and epoch.

    Source:  KIP-101, step 3: the leader stamps its own epoch on every batch; Kafka Replication Design V3, C.
    """
    leaders: dict[int, tuple[str, int]] = {}
    for op, led in events_of(ops, Leader):
        leaders.setdefault(led.epoch, (op.process, op.index))
    wrong: dict[tuple[str, int, str], tuple[Moment, str]] = {}
    for moment in moments(ops) if leaders else ():
        op, event, now, _ = moment
        if not isinstance(event, Append):
            continue
        if event.role == "leader" and now.role != "leader":
            said = f"follows in epoch {now.epoch}" if now.role else "has accepted no leadership in this process"
            wrong.setdefault((op.process, event.epoch, now.role), (moment, said))
        elif event.role == "leader" and event.epoch not in (-1, now.epoch):
            wrong.setdefault((op.process, event.epoch, "leader"), (moment, f"leads epoch {now.epoch}"))
        elif event.role == "follower" and now.role == "leader":
            wrong.setdefault((op.process, event.epoch, "copies"), (moment, f"leads epoch {now.epoch}"))
    return [
        _anomaly(
            ops, moment, said, leaders.get(moment.event.epoch if moment.event.epoch >= 0 else moment.before.epoch)
        )
        for moment, said in wrong.values()
        if isinstance(moment.event, Append)
    ]


def _anomaly(ops: Sequence[Op], moment: Moment, said: str, leader: tuple[str, int] | None) -> Anomaly:
    op, event, now, _ = moment
    assert isinstance(event, Append), "only appends are judged"
    epoch = event.epoch if event.epoch >= 0 else now.epoch
    text = f"{op.process} appended offsets {event.base} to {event.end - 1} as {event.role} at {at(op)}"
    text += f" with epoch {event.epoch}, and {said}" if event.epoch >= 0 else f", and {said}"
    others = [] if leader is None or leader[0] == op.process else [leader]
    text += f"; {others[0][0]} leads epoch {epoch}" if others else ""
    proof = [op.index, *(index for _, index in others)]
    nodes = [op.process, *(node for node, _ in others)]
    return anomaly(ops, Kind.TWO_LEADERS, text, proof, nodes, epoch, ((event.base, event.end),))

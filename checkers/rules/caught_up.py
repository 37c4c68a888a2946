"""After healing, each replica's log reaches the end of the leader's log; a replica that does not is stuck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.fact import select
from checkers.facts.outages import outages
from checkers.facts.pauses import pauses
from checkers.facts.quorum import is_quorum
from checkers.facts.view import FinalLog, Leadership, at, final_leader, final_logs, key_of
from harness.events import (
    Append,
    Awaiting,
    Follower,
    Healed,
    HighWatermark,
    Leader,
    Learned,
    MetadataState,
    Printed,
    Started,
    Stuck,
    Truncate,
)
from harness.model import Anomaly, Kind, Op, OpType, Source, events_of

_UNKNOWN: Final = "no reason is known"
# Events that a replica emits only when it makes progress again.
_PROGRESS: Final = (Append, Truncate, HighWatermark, Leader, Started)


KINDS: Final = (
    Definition(
        kind=Kind.STUCK,
        formula="after healed: log(n).end < log(leader).end; or stuck(n) with no progress of n since; or n runs "
        "and is not in the ISR (where a quorum commits: not in the group); or no leader",
        words="A replica has not caught up after healing, or is not in the ISR or the group, for the reason "
        "given.",
        evidence="runner: healed; log: snapshot; broker: stuck, awaiting, append, truncate, high-watermark",
        unchecked="A fault that the harness could not undo: `unchecked` reports it.",
        source="KIP-101, Scenario 2 (compressed batches); KAFKA-6361, n < 20; KAFKA-1120",
    ),
)


def caught_up(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find replicas that end below the leader, or that reported that they are stuck and made no progress since.

    So is one that has all of it and never returned to the ISR: it counts for no acknowledgement.

    If the runner stopped waiting for the replicas, a log that ends below the leader's proves nothing.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each node. One without a node if the partition has no leader, if its leader waits for a
        newer epoch, or if the runner could not heal and no replica shows why.

    Source:  KIP-101, Scenario 2 (compressed batches); KAFKA-6361, n < 20; KAFKA-1120.
    """
    leader = final_leader(ops)
    failed = [(op, healed) for op, healed in events_of(ops, Healed) if op.type is OpType.FAIL]
    unhealed, lack = failed[-1] if failed else (None, Healed())
    waiting = _waiting(ops, leader)
    if unhealed is not None and waiting is not None:
        op, awaiting = waiting
        text = f"{op.process} waits for an epoch newer than {awaiting.epoch}, and none comes"
        return [_stuck(ops, (), text, [op.index, unhealed.index])]
    found: list[Anomaly] = []
    said = _said(ops, lack)
    if leader is not None and leader.node is None:
        text = f"epoch {leader.epoch} has no leader after healing"
        found.append(_stuck(ops, (), f"{text}{_all(said)}", [leader.index]))
    found += _replicas(ops, leader, said, waited=lack.waited is not False)
    if unhealed is not None and not found and not lack.unhealed:
        found += _outside(ops, unhealed, lack, said)
    # A fault that the harness could not heal says nothing about the cluster; `unchecked` reports it.
    if unhealed is not None and not found and not lack.unhealed:
        text = f"the runner could not heal: {lack.missing}{_all(said)}"
        found.append(_stuck(ops, (), text, [unhealed.index]))
    return found


def _said(ops: Sequence[Op], lack: Healed) -> dict[str, str]:
    """Return what each node says of its part in the partition, which the runner could not make whole."""
    topic, partition = key_of(ops)
    found: dict[str, str] = {}
    for each in lack.said or ():
        place, _, rest = each.partition(" ")
        if place == f"{topic}-{partition}":
            node, _, word = rest.partition(" ")
            found[node] = word
    return found


def _all(said: Mapping[str, str]) -> str:
    return "".join(f"; {node} {word}" for node, word in said.items())


def _waiting(ops: Sequence[Op], leader: Leadership | None) -> tuple[Op, Awaiting] | None:
    """Return the event with which the last leader restarted and waits for a newer epoch; None if it does not."""
    last: tuple[Op, Awaiting] | None = None
    for op in select(ops, Source.BROKER, "awaiting", "leader", "follower", "started"):
        if leader is not None and op.process == leader.node:
            match op.event:
                case Awaiting() as awaiting:
                    last = (op, awaiting)
                case Leader() | Follower() | Started():
                    last = None
    return last


def _replicas(
    ops: Sequence[Op], leader: Leadership | None, words: Mapping[str, str], *, waited: bool
) -> list[Anomaly]:
    logs = final_logs(ops)
    leading = logs.get(leader.node or "") if leader else None
    lines = select(ops, Source.BROKER, "stuck", "printed")
    said = {op.process: (op, why) for op in lines if (why := _stuck_word(op)) is not None}
    found: list[Anomaly] = []
    for node in sorted(logs.keys() | said.keys()):
        log = logs.get(node)
        behind = waited and leading is not None and log is not None and log.end < leading.end
        word = said.get(node)
        if behind or (word is not None and not _moved_on(ops, word[0])):
            reason, proof = _reason(ops, node, word)
            if reason == _UNKNOWN and node in words:
                reason = f"it {words[node]}"
            where = _where(log, leading) if behind else "said that it is stuck"
            proof += [each.index for each in (log, leading) if each is not None]
            found.append(_stuck(ops, (node,), f"{node} {where}: {reason}", proof))
    return found


def _outside(ops: Sequence[Op], unhealed: Op, lack: Healed, words: Mapping[str, str]) -> list[Anomaly]:
    """Return one anomaly for each replica of the partition that the runner waited for in vain to join the ISR."""
    topic, partition = key_of(ops)
    last = next((op for op, _ in reversed(list(events_of(ops, MetadataState)))), None)
    proof = [unhealed.index, *([] if last is None else [last.index])]
    places = [each.rpartition(" ") for each in lack.outside or ()]
    where = "group" if is_quorum(ops) else "ISR"
    return [
        _stuck(ops, (node,), f"{node} is not in the {where} after healing: {lack.missing}{_all(words)}", proof)
        for place, _, node in places
        if place == f"{topic}-{partition}"
    ]


def _where(log: FinalLog | None, leading: FinalLog | None) -> str:
    assert log is not None, "a replica that is behind has a final log"
    assert leading is not None, "a replica is behind a leader that has a final log"
    return f"ends at {log.end}, below {leading.end}, where the log of its leader {leading.node} ends"


def _stuck_word(op: Op) -> str | None:
    """Return the reason with which a node reports or prints that it is stuck; None for any other op."""
    if op.source is not Source.BROKER:
        return None
    match op.event:
        case Stuck(reason=reason, error=error):
            return (reason or "no reason given") + (f" ({error})" if error else "")
        case Printed(what="stuck", line=line):
            return line or "no reason given"
    return None


def _moved_on(ops: Sequence[Op], word: Op) -> bool:
    theirs = (op for op in ops if op.index > word.index and op.process == word.process)
    if any(op.source is Source.BROKER and isinstance(op.event, _PROGRESS) for op in theirs):
        return True
    # A broker without events shows its progress by accepting a command of a newer epoch: it then follows anew.
    obeyed = [
        (op.index, command.epoch)
        for op, command in events_of(ops, Learned)
        if command.link[1] == word.process and not command.error
    ]
    last = max((epoch for index, epoch in obeyed if index < word.index), default=-1)
    return any(epoch > last for index, epoch in obeyed if index > word.index)


def _reason(ops: Sequence[Op], node: str, word: tuple[Op, str] | None) -> tuple[str, list[int]]:
    down = [outage for outage in outages(ops) if outage.node == node and outage.back is None]
    if down:
        return f"down since its {down[-1].op.f} at {at(down[-1].op)}", [down[-1].op.index]
    if word is not None:
        op, why = word
        return f"{why} at {at(op)}", [op.index]
    paused = [each for each in pauses(ops) if each.op.type is OpType.OK and node in each.nodes]
    if paused and paused[-1].pauses:
        return f"paused since {at(paused[-1].op)}", [paused[-1].op.index]
    return _UNKNOWN, []


def _stuck(ops: Sequence[Op], nodes: tuple[str, ...], text: str, proof: Sequence[int]) -> Anomaly:
    topic, partition = key_of(ops)
    return Anomaly(
        kind=Kind.STUCK,
        topic=topic,
        partition=partition,
        nodes=nodes,
        sentence=f"{text[0].upper()}{text[1:]}.",
        proof=tuple(sorted(set(proof))),
    )

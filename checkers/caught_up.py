"""After healing every replica has all that the leader has; one that has not is stuck, for a reason."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.outages import outages
from checkers.view import FinalLog, Leadership, at, final_leader, final_logs, key_of
from harness.effect import Effect, nature_of
from harness.model import Anomaly, Kind, Op, OpType, Source

# What a replica does only when it is moving again.
_PROGRESS = frozenset({"append", "truncate", "high-watermark", "leader", "started"})


def caught_up(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find replicas that end below the leader, or that said that they are stuck and moved no more.

    Shapes:  ops of one partition and the global ones. Returns one anomaly a node; one without a node when the
             partition has no leader, its leader waits for another epoch, or when the runner could not heal and
             no replica shows it. Where the runner gave up waiting, ending below the leader shows nothing.
    Source:  KIP-101, Scenario 2 (compressed batches); KAFKA-6361, n < 20; KAFKA-1120.
    """
    leader = final_leader(ops)
    unhealed = next((op for op in reversed(ops) if op.f == "healed" and op.type is OpType.FAIL), None)
    waiting = _waiting(ops, leader)
    if unhealed is not None and waiting is not None:
        epoch = waiting.value.get("epoch")
        text = f"{waiting.process} waits for an epoch newer than {epoch}, and nobody gives it one"
        return [_stuck(ops, (), text, [waiting.index, unhealed.index])]
    found: list[Anomaly] = []
    if leader is not None and leader.node is None:
        found.append(_stuck(ops, (), f"epoch {leader.epoch} has no leader after healing", [leader.index]))
    found += _replicas(ops, leader, waited=unhealed is None or bool(unhealed.value.get("waited", True)))
    # That the harness could not undo a fault says nothing of the cluster; `unchecked` reports it.
    if unhealed is not None and not found and not unhealed.value.get("unhealed"):
        missing = unhealed.value.get("missing")
        found.append(_stuck(ops, (), f"the runner could not heal: {missing}", [unhealed.index]))
    return found


def _waiting(ops: Sequence[Op], leader: Leadership | None) -> Op | None:
    """The word of the last leader that it came back and waits for a newer epoch, None when it leads or is none."""
    told = [
        op
        for op in ops
        if op.source is Source.BROKER
        and leader is not None
        and op.process == leader.node
        and op.f in ("awaiting", "leader", "follower", "started")
    ]
    return told[-1] if told and told[-1].f == "awaiting" else None


def _replicas(ops: Sequence[Op], leader: Leadership | None, *, waited: bool) -> list[Anomaly]:
    logs = final_logs(ops)
    leading = logs.get(leader.node or "") if leader else None
    said = {op.process: op for op in ops if _says_stuck(op)}
    found: list[Anomaly] = []
    for node in sorted(logs.keys() | said.keys()):
        log = logs.get(node)
        behind = waited and leading is not None and log is not None and log.end < leading.end
        word = said.get(node)
        if behind or (word is not None and not _moved_on(ops, word)):
            reason, proof = _reason(ops, node, word)
            where = _where(log, leading) if behind else "said that it is stuck"
            proof += [each.index for each in (log, leading) if each is not None]
            found.append(_stuck(ops, (node,), f"{node} {where}: {reason}", proof))
    return found


def _where(log: FinalLog | None, leading: FinalLog | None) -> str:
    assert log is not None, "a replica that is behind has a final log"
    assert leading is not None, "a replica is behind a leader that has a final log"
    return f"ends at {log.end}, below {leading.end}, where the log of its leader {leading.node} ends"


def _says_stuck(op: Op) -> bool:
    return op.source is Source.BROKER and "stuck" in (op.f, op.value.get("what"))


def _moved_on(ops: Sequence[Op], word: Op) -> bool:
    later = [op for op in ops if op.index > word.index]
    told = any(op.source is Source.BROKER and op.process == word.process and op.f in _PROGRESS for op in later)
    # Of one that tells nothing it is seen that it took a command of a newer epoch: it follows anew from then on.
    last = max((epoch for op in ops if op.index < word.index and (epoch := _obeyed(op, word.process))), default=0)
    return told or any(_obeyed(op, word.process) > last for op in later)


def _obeyed(op: Op, node: str) -> int:
    """The epoch after that of a command which the node has taken, so that none is 0."""
    taken = op.f == "commanded" and op.value["link"][1] == node and not op.value["error"]
    return int(op.value["epoch"]) + 1 if taken else 0


def _reason(ops: Sequence[Op], node: str, word: Op | None) -> tuple[str, list[int]]:
    down = [outage for outage in outages(ops) if outage.node == node and outage.back is None]
    if down:
        return f"down since its {down[-1].op.f} at {at(down[-1].op)}", [down[-1].op.index]
    if word is not None:
        error = f" ({word.value['error']})" if word.value.get("error") else ""
        reason = word.value.get("reason") or word.value.get("line") or "no reason given"
        return f"{reason}{error} at {at(word)}", [word.index]
    paused = [
        op
        for op in ops
        if op.source is Source.NEMESIS
        and op.type is OpType.OK
        and node in op.value["nodes"]
        and (nature_of(op).effect is Effect.PAUSED or Effect.PAUSED in nature_of(op).heals)
    ]
    if paused and nature_of(paused[-1]).effect is Effect.PAUSED:
        return f"paused since {at(paused[-1])}", [paused[-1].index]
    return "it gave no reason", []


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

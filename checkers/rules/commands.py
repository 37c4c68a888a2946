"""Commands of nodes that are not controller, where brokers emit no events: seen by the fabric alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.facts.moments import anomaly, leader_of, margin_ns, never_stood
from checkers.facts.view import at, noun
from harness.events import ControllerNamed, Delay, Double, Hold, Injection, Learned
from harness.model import Anomaly, Kind, Op, events_of

_API: Final = "command"
_SHIFTS: Final = (Hold, Delay, Double)


def foreign_commands(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """
    Yield accepted commands of a node that the metadata never named controller, or that a newer one had replaced.

    A command that was under way when its controller was deposed is lawful until the broker hears from the new one.
    Held commands and paused nodes shift what the fabric sees, so runs with either are not judged by time.

    Source:  Kafka Replication Design V3, D: a controller epoch fences who was deposed.
    """
    given = [(op, command) for op, command in events_of(ops, Learned) if not command.error]
    shown = list(events_of(ops, ControllerNamed)) if given else []
    yield from _unwritten(ops, given)
    if not shown:
        return
    ever = {node.node for _, node in shown}
    shifted = any(rule.api in (_API, "*") for kind in _SHIFTS for _, rule in events_of(ops, kind))
    heard: dict[str, tuple[int, Op, str]] = {}  # node -> its newest controller's place in `shown`, command, name
    place, margin = -1, margin_ns(ops)
    for op, command in given:
        sender, node = command.link
        while place + 1 < len(shown) and shown[place + 1][0].time_ns + margin <= op.time_ns:
            place += 1
        if sender not in ever:
            text = f"{sender} commanded {node} at {at(op)} to accept epoch {command.epoch}, and {noun(ops)} never "
            text += f"named {sender} controller"
            proof = [op.index, shown[max(place, 0)][0].index]
            yield anomaly(ops, Kind.WRONG_CONTROLLER, text, proof, [sender], command.epoch)
            continue
        mine = max((n for n, (each, held) in enumerate(shown) if held.node == sender and each.index < op.index),
                   default=-1)  # fmt: skip
        newest = heard.get(node)
        if newest is not None and 0 <= mine < newest[0] and newest[0] <= place and not shifted:
            if op.time_ns - newest[1].time_ns > margin and not _paused(ops, node):
                text = f"{node} accepted epoch {command.epoch} from {sender} at {at(op)}, after {newest[2]}, the "
                text += f"newer controller, had commanded it at {at(newest[1])}"
                proof = [op.index, newest[1].index, shown[newest[0]][0].index]
                yield anomaly(ops, Kind.WRONG_CONTROLLER, text, proof, [sender, newest[2]], command.epoch)
        elif mine >= 0 and (newest is None or mine > newest[0]):
            heard[node] = (mine, op, sender)


def _unwritten(ops: Sequence[Op], given: Sequence[tuple[Op, Learned]]) -> Iterator[Anomaly]:
    """Yield commands of an epoch that the metadata never had, or had with another leader."""
    for op, command in given:
        said = (
            f"{command.link[0]} commanded {command.link[1]} at {at(op)} that {command.leader or 'nobody'} leads "
        )
        said += f"epoch {command.epoch}"
        seen = leader_of(ops, command.epoch)
        proof: tuple[int, ...] = ()
        if seen is not None and seen[1].leader != command.leader:
            proof, why = (seen[0].index,), f"{noun(ops)} has {seen[1].leader or 'nobody'}"
        elif seen is None:
            proof, why = never_stood(ops, command.epoch, op), f"{noun(ops)} never had that epoch"
        if proof:
            nodes = [command.link[0]]
            yield anomaly(ops, Kind.WRONG_CONTROLLER, f"{said}; {why}", [op.index, *proof], nodes, command.epoch)


def _paused(ops: Sequence[Op], node: str) -> bool:
    return any(node in fault.nodes and fault.effect == "paused" for _, fault in events_of(ops, Injection))

"""
Who took up leading, when, and with what log; who was elected from outside the ISR.

A broker that is sent the same leaderAndISR again takes up nothing. One that comes back in a new process and
leads the same epoch does: that is what KIP-101 calls a returning leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from checkers.facts.view import names_of
from harness.events import Elected, Leader, LeaderAndIsr, Started
from harness.model import Op, Source, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """
    One taking up of leadership, as the broker told it, or ZooKeeper where brokers tell nothing.

    Shapes:  log_end is the log end offset at that moment, None when nobody told. elected is the index of the
             op that made it leader: ZooKeeper's where it was seen before the broker's own. incarnation counts
             the node's processes.
    """

    node: str
    epoch: int
    incarnation: int
    log_end: int | None
    resumed: bool
    unclean: bool
    elected: int
    op: Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """
    A new (leader, epoch) in ZooKeeper.

    Shapes:  outside: the leader was not in the ISR that was seen to stand before. A watch may miss a state
             that stood for a moment only, so False proves nothing where the controller told otherwise.
    """

    node: str
    epoch: int
    outside: bool
    op: Op


def takeovers(ops: Sequence[Op]) -> list[Takeover]:
    """Give every taking up of leadership, in index order."""
    seen = elections(ops)
    led = _told_by_brokers(ops, seen)
    return led or [_by_zookeeper(election) for election in seen]


def elections(ops: Sequence[Op]) -> list[Election]:
    """Give every (leader, epoch) that ZooKeeper was seen to hold, once, in index order."""
    found: dict[tuple[str, int], Election] = {}
    isr: Sequence[str | None] | None = None
    for op, state in events_of(ops, LeaderAndIsr):
        node, epoch = state.leader, state.epoch
        if node is not None and (node, epoch) not in found:
            outside = isr is not None and node not in isr
            found[node, epoch] = Election(node=node, epoch=epoch, outside=outside, op=op)
        isr = state.isr
    return list(found.values())


def _told_by_brokers(ops: Sequence[Op], seen: Sequence[Election]) -> list[Takeover]:
    elected = {(election.node, election.epoch): election for election in seen}
    unclean = _unclean(ops)
    incarnations: dict[str, int] = {}
    found: dict[tuple[str, int, int], Takeover] = {}
    for op in ops:
        if op.source is not Source.BROKER:
            continue
        match op.event:
            case Started():
                incarnations[op.process] = incarnations.get(op.process, 0) + 1
            case Leader() as led:
                key = (op.process, led.epoch, incarnations.get(op.process, 0))
                again = any(takeover[:2] == key[:2] for takeover in found)
                takeover = _told(op, led, key, elected.get(key[:2]), again=again)
                if key[:2] in unclean and not again:
                    takeover = replace(takeover, unclean=True)
                found.setdefault(key, takeover)
    return list(found.values())


def _unclean(ops: Sequence[Op]) -> set[tuple[str, int]]:
    """What controllers said that they elected uncleanly."""
    names = names_of(ops)
    told = (elected for _, elected in events_of(ops, Elected) if elected.unclean)
    return {(names.get(elected.leader, ""), elected.epoch) for elected in told}


def _told(op: Op, led: Leader, key: tuple[str, int, int], election: Election | None, *, again: bool) -> Takeover:
    # ZooKeeper's op is the election only the first time; a leader that returns elects itself.
    before = election is not None and election.op.index < op.index and not again
    return Takeover(
        node=key[0],
        epoch=key[1],
        incarnation=key[2],
        log_end=led.log_end_offset,
        resumed=bool(led.resumed),
        unclean=bool(led.unclean) or (election is not None and election.outside and not again),
        elected=election.op.index if election is not None and before else op.index,
        op=op,
    )


def _by_zookeeper(election: Election) -> Takeover:
    return Takeover(
        node=election.node,
        epoch=election.epoch,
        incarnation=0,
        log_end=None,
        resumed=False,
        unclean=election.outside,
        elected=election.op.index,
        op=election.op,
    )

"""
Which broker became leader, when, and with what log end; which leader was elected from outside the ISR.

A broker that receives the same state again does not become leader again. A broker that restarts and leads
the same epoch does: KIP-101 calls it a returning leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from checkers.facts.fact import fact, select
from checkers.facts.moments import follows, is_polled
from checkers.facts.view import names_of, setup_of, traits
from harness.events import Elected, Leader, MetadataState, Started
from harness.model import Op, Source, events_of
from harness.target.traits import Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """
    One broker that became leader, as the broker reported it; as the metadata shows it if brokers emit no events.

    Attributes:
        incarnation: the number of the node's process, counted from its first start.
        log_end: the log end offset at that time, None if not reported.
        resumed: the broker leads the epoch again after a restart.
        elected: the index of the op that made it leader: the metadata's if it precedes the broker's own.
        op: the op that reports the new leader.
        unclean_in: the epoch of the unclean election that made its ISR: its own, or that of a leader before it
            that never led; -1 if none did.
    """

    node: str
    epoch: int
    incarnation: int
    log_end: int | None
    resumed: bool
    unclean: bool
    elected: int
    op: Op
    unclean_in: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """
    A new (leader, epoch) in the metadata.

    Attributes:
        outside: True if the leader was not in the ISR before, and no state in between can have been missed where
            controllers report their elections. False proves nothing where a controller reported an unclean one.
            Where metadata are polled, it may have been so, which matters only where that is allowed. Where a
            quorum elects, nobody is outside.
    """

    node: str
    epoch: int
    outside: bool
    op: Op


@fact
def takeovers(ops: Sequence[Op]) -> list[Takeover]:
    """Return every time that a broker became leader, in index order."""
    seen = elections(ops)
    led = _reported_by_brokers(ops, seen)
    return led or [_by_metadata(election) for election in seen]


@fact
def elections(ops: Sequence[Op]) -> list[Election]:
    """Return every (leader, epoch) that was seen in the metadata, once each, in index order."""
    found: dict[tuple[str, int], Election] = {}
    before: MetadataState | None = None
    controllers_report = any(True for _ in events_of(ops, Elected))
    for op, state in events_of(ops, MetadataState):
        node, epoch = state.leader, state.epoch
        if node is not None and (node, epoch) not in found:
            outside = before is not None and node not in before.isr and _elects_from_isr(ops)
            if outside and before is not None and controllers_report:
                # A state in between, in which the leader joined, may have been missed.
                outside = follows(ops, before.version, state.version)
            found[node, epoch] = Election(node=node, epoch=epoch, outside=outside, op=op)
        before = state
    return list(found.values())


def _elects_from_isr(ops: Sequence[Op]) -> bool:
    """Return True if a leader that was not seen in the ISR may accuse, or excuse, anybody."""
    setup = setup_of(ops)
    if traits(ops).commit is Commit.QUORUM:
        return False
    # Between two looks it may have joined: that accuses nobody.
    return not is_polled(ops) or setup is None or setup.unclean


def _reported_by_brokers(ops: Sequence[Op], seen: Sequence[Election]) -> list[Takeover]:
    elected = {(election.node, election.epoch): election for election in seen}
    unclean = _unclean(ops)
    incarnations: dict[str, int] = {}
    found: dict[tuple[str, int, int], Takeover] = {}
    for op in select(ops, Source.BROKER, "started", "leader"):
        match op.event:
            case Started():
                incarnations[op.process] = incarnations.get(op.process, 0) + 1
            case Leader() as led:
                key = (op.process, led.epoch, incarnations.get(op.process, 0))
                again = any(takeover[:2] == key[:2] for takeover in found)
                takeover = _takeover(op, led, key, elected.get(key[:2]), again=again)
                if key[:2] in unclean and not again:
                    takeover = replace(takeover, unclean=True)
                found.setdefault(key, takeover)
    # Its controller may be deposed before it reports an election.
    outside = [each for each in seen if each.outside or (each.node, each.epoch) in unclean]
    return _with_inherited(list(found.values()), outside)


def _with_inherited(led: list[Takeover], unclean: Sequence[Election]) -> list[Takeover]:
    """
    Return the takeovers, each with the unclean election that made its ISR.

    A broker that is elected uncleanly may be gone before it leads. Its ISR stays, and who is elected from it next
    is elected uncleanly too, and by that election.
    """
    found: list[Takeover] = []
    newest = -1
    for takeover in led:
        before = [each for each in unclean if newest < each.epoch < takeover.epoch]
        newest = max(newest, takeover.epoch)
        if takeover.unclean:
            found.append(replace(takeover, unclean_in=takeover.epoch))
        elif before and not takeover.resumed:
            elected = min(takeover.elected, before[0].op.index)
            found.append(replace(takeover, unclean=True, unclean_in=before[0].epoch, elected=elected))
        else:
            found.append(takeover)
    return found


def _unclean(ops: Sequence[Op]) -> set[tuple[str, int]]:
    """Return the (leader, epoch) of each election that a controller reported as unclean."""
    names = names_of(ops)
    reported = (elected for _, elected in events_of(ops, Elected) if elected.unclean)
    return {(names.get(elected.leader, ""), elected.epoch) for elected in reported}


def _takeover(
    op: Op, led: Leader, key: tuple[str, int, int], election: Election | None, *, again: bool
) -> Takeover:
    # The metadata's op is the election only the first time: a returning leader leads without a new election.
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


def _by_metadata(election: Election) -> Takeover:
    return Takeover(
        node=election.node,
        epoch=election.epoch,
        incarnation=0,
        log_end=None,
        resumed=False,
        unclean=election.outside,
        elected=election.op.index,
        op=election.op,
        unclean_in=election.epoch if election.outside else -1,
    )

"""
The wire of NATS: an address for each pair of servers, whose route either may dial; clients.

A route carries all that two servers say, of every Raft group. There are no links to the metadata: these are the
state of one more group, `_meta_`. A follower never asks where an epoch ends: each append entry says the term of
the entry before it, and a follower that has another answers with what it has.

Servers must be told not to pass by the addresses of pairs: one route for each pair (`pool_size: -1`), which is not
compressed (`compression: off`), and an `advertise` that nobody can dial.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from harness.target.wire import Between, Hearing, Link, LinkKind, Reading, Sender, Stands, Word
from targets.nats.wire.memory import Memory
from targets.nats.wire.reading import MESSAGES, ClientReading, RouteReading

LINKS: Final[Sequence[LinkKind]] = (
    LinkKind(name="routes", between=Between.NODES, sender=Sender.PAIR, either_dials=True),
    LinkKind(name="clients", between=Between.CLIENTS, sender=Sender.LISTENER),
)

_FETCH: Final = Stands(api=Word.FETCH.value, own="AppendEntry of a stream's group, and its answer")
_NOTHING: Final[Mapping[Word, str]] = {
    Word.EPOCH_QUESTION: "no server asks where an epoch ends: an append entry says the term before it",
    Word.COMMAND: "no server is told the state of a stream: each applies the log of the metadata's Raft group",
    Word.STOP: "no server is told to give up a stream: each applies the log of the metadata's Raft group",
    Word.METADATA_REQUEST: "the metadata are a Raft group of the servers: MetaAppendEntry and MetaVote on routes",
}


class NatsWire:
    """The wire; see harness/target/wire.py for every call."""

    links: Sequence[LinkKind] = LINKS
    messages: Collection[str] = MESSAGES

    def stands(self, rules: Mapping[str, str]) -> Mapping[Word, Stands]:
        """Return what stands for each general word."""
        del rules
        nothing = {word: Stands(api="", own=why) for word, why in _NOTHING.items()}
        return {Word.FETCH: _FETCH, Word.QUESTION: _FETCH, **nothing}

    def hear(self, nodes: Mapping[int, str]) -> Hearing:
        """Begin to read the connections of one run."""
        del nodes
        return _Hearing()


class _Hearing:
    """The connections of one run."""

    def __init__(self) -> None:
        self._memory = Memory()

    def reading(self, kind: LinkKind, link: Link) -> Reading:
        """Return the reading of a new connection."""
        return RouteReading(link, self._memory) if kind.between is Between.NODES else ClientReading(link)


WIRE: Final = NatsWire()

"""
The wire of Fluss: an address for each pair of servers, as no frame says who sent it; ZooKeeper; clients.

A follower never asks where an epoch ends: it fetches, from where its log ends after its cut.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from harness.target.length_prefix import UnreadFrames
from harness.target.wire import Between, Hearing, Link, LinkKind, Reading, Sender, Stands, Word
from targets.fluss.wire.frames import MESSAGES, WORDS, Api
from targets.fluss.wire.reading import FlussReading
from targets.zookeeper.packets import ZooKeeperReading

LINKS: Final[Sequence[LinkKind]] = (
    LinkKind(name="FROM_SERVER listeners", between=Between.NODES, sender=Sender.PAIR),
    LinkKind(name="zookeeper.address", between=Between.METADATA, sender=Sender.LISTENER),
    LinkKind(name="CLIENT listener", between=Between.CLIENTS, sender=Sender.LISTENER),
)


class FlussWire:
    """The wire; see harness/target/wire.py for every call."""

    links: Sequence[LinkKind] = LINKS
    messages: Collection[str] = MESSAGES

    def stands(self, rules: Mapping[str, str]) -> Mapping[Word, Stands]:
        """Return what stands for each general word."""
        del rules
        found = {word: Stands(api=word.value, own=Api(key).name) for key, word in WORDS.items()}
        found[Word.QUESTION] = found[Word.FETCH]
        found[Word.EPOCH_QUESTION] = Stands(api="", own="no server asks where an epoch ends")
        found[Word.METADATA_REQUEST] = Stands(api=Word.METADATA_REQUEST.value, own="a packet to ZooKeeper")
        return found

    def hear(self, nodes: Mapping[int, str]) -> Hearing:
        """Begin to read the connections of one run."""
        return _Hearing(nodes)


class _Hearing:
    """The connections of one run."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def reading(self, kind: LinkKind, link: Link) -> Reading:
        """Return the reading of a new connection."""
        match kind.between:
            case Between.NODES:
                return FlussReading(link, self._names)
            case Between.METADATA:
                return ZooKeeperReading(link)
            case Between.CLIENTS:
                return UnreadFrames(link)


WIRE: Final = FlussWire()

"""
The wire of Kafka to 3.9, and of our broker, which speaks it.

Every broker has one listener for the others; a client id names the sender, or the replica id of a Fetch. A broker
reaches ZooKeeper through an address that it alone is given.

Source:  Kafka's client ids (targets/kafka_family/wire/reading.py); KIP-101; KIP-595 (2.7: the Fetch itself asks).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from harness.target.length_prefix import UnreadFrames
from harness.target.wire import Between, Hearing, Link, LinkKind, Reading, Sender, Stands, Word
from targets.kafka_family.wire.frames import API_NAMES, MESSAGES, WORDS
from targets.kafka_family.wire.reading import KafkaReading
from targets.zookeeper.packets import ZooKeeperReading

LINKS: Final[Sequence[LinkKind]] = (
    LinkKind(name="inter-broker listener", between=Between.NODES, sender=Sender.FRAMES),
    LinkKind(name="zookeeper.connect", between=Between.METADATA, sender=Sender.LISTENER),
    LinkKind(name="client listener", between=Between.CLIENTS, sender=Sender.LISTENER),
)


class KafkaWire:
    """
    The wire of one target of the family.

    Args:
        asks_first: Whether a restarted follower asks for an epoch's end first, under these rules; else it fetches.
        commands: Whether LeaderAndIsr has Apache Kafka's layout. Then its answers are recorded, and followers'
            answered fetches. Our broker uses the same api key with the fields of Kafka Replication Design V3.
    """

    links: Sequence[LinkKind] = LINKS
    messages: Collection[str] = MESSAGES

    def __init__(self, asks_first: Callable[[Mapping[str, str]], bool], *, commands: bool) -> None:
        self._asks_first = asks_first
        self._commands = commands

    def stands(self, rules: Mapping[str, str]) -> Mapping[Word, Stands]:
        """Return what stands for each general word."""
        first = Word.EPOCH_QUESTION if self._asks_first(rules) else Word.FETCH
        own = {Word(word): API_NAMES[key] for key, word in WORDS.items()}
        found = {word: Stands(api=word.value, own=name) for word, name in own.items()}
        found[Word.QUESTION] = Stands(api=first.value, own=own[first])
        found[Word.METADATA_REQUEST] = Stands(api=Word.METADATA_REQUEST.value, own="a packet to ZooKeeper")
        return found

    def hear(self, nodes: Mapping[int, str]) -> Hearing:
        """Begin to read the connections of one run."""
        return _Hearing(nodes, {} if self._commands else None)


class _Hearing:
    """The connections of one run, which share the names of topics."""

    def __init__(self, names: Mapping[int, str], topics: dict[str, str] | None) -> None:
        self._names = names
        self._topics = topics

    def reading(self, kind: LinkKind, link: Link) -> Reading:
        """Return the reading of a new connection."""
        match kind.between:
            case Between.NODES:
                return KafkaReading(link, self._names, self._topics)
            case Between.METADATA:
                return ZooKeeperReading(link)
            case Between.CLIENTS:
                return UnreadFrames(link)

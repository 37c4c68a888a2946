"""
The wire of RocketMQ: remoting and replication between brokers, remoting to controllers and name servers; clients.

No frame says who sent it but a slave's handshake. Each process resolves the hosts of the others by itself, to
addresses of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from harness.target.length_prefix import UnreadFrames
from harness.target.wire import Between, Hearing, Link, LinkKind, Reading, Sender, Stands, Word
from targets.rocketmq.wire.frames import COMMAND, MESSAGES
from targets.rocketmq.wire.memory import Memory
from targets.rocketmq.wire.remoting import Remoting
from targets.rocketmq.wire.replication import Replication

_REPLICATION: Final = "haListenPort"
LINKS: Final[Sequence[LinkKind]] = (
    LinkKind(name="listenPort", between=Between.NODES, sender=Sender.HOST, with_clients=True),
    LinkKind(name=_REPLICATION, between=Between.NODES, sender=Sender.HOST),
    LinkKind(name="clients", between=Between.CLIENTS, sender=Sender.LISTENER),
)
_QUESTION: Final = Stands(api=Word.EPOCH_QUESTION.value, own="HANDSHAKE of a slave, and the epochs of its master")
_STANDS: Final[Mapping[Word, Stands]] = {
    Word.FETCH: Stands(api=Word.FETCH.value, own="TRANSFER: where a slave's log ends, and what its master sends"),
    Word.EPOCH_QUESTION: _QUESTION,
    Word.QUESTION: _QUESTION,
    Word.COMMAND: Stands(api=Word.COMMAND.value, own=COMMAND.name),
    Word.STOP: Stands(api="", own="no broker is told to give up a topic: it has all of its group"),
    Word.METADATA_REQUEST: Stands(
        api="", own="each message to a controller or name server has a name of its own, such as AlterSyncStateSet"
    ),
}


class RocketWire:
    """The wire; see harness/target/wire.py for every call."""

    links: Sequence[LinkKind] = LINKS
    messages: Collection[str] = MESSAGES

    def stands(self, rules: Mapping[str, str]) -> Mapping[Word, Stands]:
        """Return what stands for each general word."""
        del rules
        return _STANDS

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
        if kind.between is Between.CLIENTS:
            return UnreadFrames(link)
        return Replication(link, self._memory) if kind.name == _REPLICATION else Remoting(link)


WIRE: Final = RocketWire()

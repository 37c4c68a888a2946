"""The clients that speak Kafka's protocol, as the part of a target; a module is imported when a run needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from harness.registry import load
from harness.target.clients import Client
from harness.workload.plan import Clients, Library
from targets.kafka_family.clients import libraries

if TYPE_CHECKING:
    from harness.cleanup.ledger import Ledger
    from harness.history.file import History

# Name of the library that a run's client stands on -> its module, which has a CLIENT.
CLIENTS: Final[Mapping[str, str]] = {
    "raw": "targets.kafka_family.clients.raw",
    "librdkafka": "targets.kafka_family.clients.librdkafka",
}


def always(rules: Mapping[str, str]) -> bool:
    """Return True: every protocol of our broker has record batches."""
    del rules
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaClients:
    """
    The clients of a target of Kafka's family; see harness.target.clients.TargetClients for every call.

    Attributes:
        has_batches: whether brokers with these rules know record batches (0.11): `raw` writes no others.
    """

    has_batches: Callable[[Mapping[str, str]], bool] = always
    names: Sequence[str] = tuple(CLIENTS)
    creates: ClassVar[bool] = True
    killable: ClassVar[bool] = True

    def unsendable(self, acks: int, codec: str) -> str:
        """Return "": every acks and codec is Kafka's."""
        del acks, codec
        return ""

    def fit(self, plans: Clients) -> Clients:
        """Return all of them; a library that this machine lacks is another question."""
        return plans

    def own(self, rules: Mapping[str, str]) -> str:
        """Return the client that sends every request once, if the brokers can read what it sends."""
        return Library.RAW if self.has_batches(rules) else Library.LIBRDKAFKA

    def make(
        self, name: str, *, history: History, bootstrap: Callable[[], Sequence[str]], ledger: Ledger | None = None
    ) -> Client:
        """Return a client over the network."""
        kind = load("client", CLIENTS, name, "CLIENT")
        made: Client = kind(history=history, bootstrap=bootstrap, ledger=ledger)
        return made

    def require(self, name: str) -> None:
        """Raise UsageError if a library's package is not installed."""
        libraries.require_installed(Library(name))

    def lacking(self, plans: Clients) -> Mapping[Library, str]:
        """Return the named libraries that this machine cannot have."""
        return libraries.lacking(plans)

    def untold(self, plans: Clients) -> tuple[str, ...]:
        """Return none: each library says it."""
        del plans
        return ()

    def impossible(self, plans: Clients, own: str) -> Iterator[str]:
        """Yield what no library can do, or not with these brokers."""
        return libraries.impossible(plans, Library(own))

    def serves(self, address: str) -> bool:
        """Ask for its versions."""
        from targets.kafka_family.clients import probe

        return probe.serves(address)

    def leads(self, address: str, topic: str, partition: int) -> bool:
        """Ask for an offset that only a leader gives, and for metadata."""
        from targets.kafka_family.clients import probe

        return probe.leads(address, topic, partition)

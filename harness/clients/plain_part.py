"""A target's plain client as its part `clients`: what it cannot do is impossible, with the reason."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from harness.cleanup.ledger import Ledger
from harness.clients.beside import Beside
from harness.clients.children import Children
from harness.clients.plain import PlainClient
from harness.clients.plain_nodes import PATIENCE_S, acks_of, bounded
from harness.clients.plain_work import impossible_of, plainly, unsendable
from harness.history.file import History
from harness.launch import Address
from harness.registry import pick
from harness.target.clients import Client
from harness.target.log_client import Leads, MakeLogClient, Refused, Serves
from harness.workload.plan import Clients, Library, Place

NAME: Final = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainClients:
    """
    The clients of a target with a plain one; see harness.target.clients.TargetClients for every call.

    Attributes:
        make_one: makes the client of one partition at one node.
        target: the target's name, for errors.
        creates_topics: whether the target's operator makes topics, since no client can choose their nodes.
        beside: a library on which some clients of workloads stand; None: there is none.
        services: where each process of the target's services answers in this run, by kind.
    """

    make_one: MakeLogClient
    target: str = ""
    creates_topics: bool = False
    beside: Beside | None = None
    services: Mapping[str, Sequence[Address]] = field(default_factory=dict)
    names: Sequence[str] = (NAME,)
    killable: ClassVar[bool] = False

    @property
    def creates(self) -> bool:
        """Whether topics are made for a run, by the client or by the operator."""
        return self.creates_topics or hasattr(self.make_one, "create")

    def unsendable(self, acks: int, codec: str) -> str:
        """Return what the call of the client does not say."""
        return unsendable(acks, codec, acks_of(self.make_one))

    def fit(self, plans: Clients) -> Clients:
        """Return producers with acks=all that send values alone, once; no churners, and no libraries."""
        return plainly(plans, acks_of(self.make_one), self.beside)

    def own(self, rules: Mapping[str, str]) -> str:
        """Return the only one."""
        del rules
        return NAME

    def make(
        self, name: str, *, history: History, bootstrap: Callable[[], Sequence[str]], ledger: Ledger | None = None
    ) -> Client:
        """Return a run's client."""
        pick("client", {NAME: PlainClient}, name)
        return PlainClient(
            make=self.make_one,
            target=self.target,
            history=history,
            bootstrap=bootstrap,
            beside=self.beside,
            services=self.services,
            children=None if ledger is None else Children.of(ledger, history.path),
        )

    def require(self, name: str) -> None:
        """Do nothing: the target's folder has all that it needs."""

    def lacking(self, plans: Clients) -> Mapping[Library, str]:
        """Return none: `impossible` names the libraries."""
        del plans
        return {}

    def untold(self, plans: Clients) -> tuple[str, ...]:
        """Return the producers that stand on the library, if it does not tell them."""
        beside = self.beside
        if beside is None or beside.tells_offsets:
            return ()
        return tuple(each.name for each in plans.producers if beside.sends(each, plans))

    def impossible(self, plans: Clients, own: str) -> Iterator[str]:
        """Yield what a plain client has no call for."""
        del own
        return impossible_of(plans, acks_of(self.make_one), self.beside)

    def serves(self, address: str) -> bool:
        """Ask the node if the client can; else look whether it listens."""
        client = self.make_one(address, Place("", 0), PATIENCE_S)
        try:
            if isinstance(client, Serves):
                return bounded(client.serves, address, self._whose)
            host, _, port = address.rpartition(":")
            with socket.create_connection((host, int(port)), PATIENCE_S):
                return True
        except (Refused, OSError):
            return False

    def leads(self, address: str, topic: str, partition: int) -> bool:
        """Ask the node if the client can; else believe whoever asks."""
        client = self.make_one(address, Place(topic, partition), PATIENCE_S)
        try:
            return bounded(client.leads, address, self._whose) if isinstance(client, Leads) else True
        except (Refused, OSError):
            return False

    @property
    def _whose(self) -> str:
        return f"target {self.target}, clients"

"""
The clients of a target: what speaks to its nodes as its users do.

A run has one client, which the scenario's steps use and which starts the workload's clients. `TargetClients` is
the target's part: which clients it has, and what a node says of itself when a client asks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from harness.workload.plan import Clients, Library

if TYPE_CHECKING:  # with processes and files, which a command that only asks for targets does not need
    from harness.cleanup.ledger import Ledger
    from harness.history.file import History


class Underway(Protocol):
    """A produce that runs in the background."""

    @property
    def done(self) -> bool:
        """Whether every record has its outcome."""

    def result(self) -> list[int]:
        """Return the offsets of a finished produce; raise PreconditionError if a record was not acknowledged."""


class Workload(Protocol):
    """A workload's clients at work: each producer and consumer is one process of the history."""

    def stop_producing(self) -> None:
        """Let each producer and churner end after the outcome of what it asks now."""

    def stop(self) -> None:
        """Let each consumer end after the poll that it waits for, and each producer as `stop_producing` does."""

    def crash(self) -> str:
        """
        Kill the process of one client while a request of it is under way; return what was seen.

        It is the client that was killed least often, the first of them by name. Another process goes on for it.

        Raises:
            PreconditionError: no client has a process of its own, or none asks for anything in time.
        """

    @property
    def kills(self) -> int:
        """How many processes of its clients were killed."""

    @property
    def produced(self) -> bool:
        """Whether every producer and churner has ended, so that every record has its outcome."""

    @property
    def done(self) -> bool:
        """Whether every client has ended."""


class Client(Protocol):
    """
    The clients of one run; every call is one process of the history.

    Raises:
        PreconditionError: the cluster does not do what the scenario needs.
        UsageError: the client does not support what is asked.
    """

    @property
    def sends_once(self) -> bool:
        """Whether no record is ever sent again, so that a log has it only at the acknowledged offset."""

    @property
    def churns(self) -> bool:
        """Whether its workloads may have churners, which create and delete topics."""

    def create_topic(self, topic: str, replicas: Sequence[int], *further: Sequence[int]) -> None:
        """
        Create the topic, and return when the request was answered.

        Args:
            replicas: the broker ids of partition 0, the first of which is to lead.
            further: those of partition 1, 2, and so on.
        """

    def add_partitions(self, topic: str, first: int, *assignments: Sequence[str], ids: Mapping[str, int]) -> None:
        """
        Add partitions to a topic, and return when the request was answered.

        Args:
            first: the number of the first new one: how many partitions the topic has.
            assignments: the nodes of each new one, the first of which is to lead.
            ids: node's name -> its broker id.

        Raises:
            PreconditionError: they were refused, or there was no answer in time; the history has which.
        """

    def produce(
        self,
        topic: str,
        partition: int,
        name: str,
        values: Sequence[str],
        *,
        acks: int,
        codec: str = "none",
        singly: bool = False,
        via: str = "",
        timeout_s: float | None = None,
        age_ms: int | None = None,
    ) -> list[int]:
        """
        Send records and return their offsets.

        Args:
            name: the name of the group of records.
            singly: send each record in a batch of its own.
            via: the address of the node to send to, or its name if nodes have no addresses; "" for the leader that
                the cluster names.
            timeout_s: the limit of the whole call, in seconds; None for the limit of any client operation.
            age_ms: how long before now the records' time is, in milliseconds; None for the client's own way.

        Raises:
            PreconditionError: a record was not acknowledged.
        """

    def begin_produce(
        self,
        topic: str,
        partition: int,
        name: str,
        values: Sequence[str],
        *,
        acks: int,
        codec: str = "none",
        singly: bool = False,
        via: str = "",
        timeout_s: float | None = None,
        age_ms: int | None = None,
    ) -> Underway:
        """Send records as `produce` does, without waiting for their outcome."""

    def begin_workload(self, clients: Clients, seed: int, *, nodes: Mapping[str, str]) -> Workload:
        """
        Start a workload's clients, each in the background, and return them; churners only if it `churns`.

        Args:
            seed: decides what each of them sends, and when.
            nodes: node's name -> its address, as for `via`.
        """

    def read_all(self, topic: str, partition: int, *, via: str = "") -> list[tuple[int, str]]:
        """Return (offset, value) of all records that a consumer may see; `via` is as for `produce`."""

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """
        Delete the records before an offset (-1: all that are committed), and return the low watermark.

        Raises:
            PreconditionError: the deletion was refused, or was not answered in time.
        """

    def alter_topic(self, topic: str, setting: str, to: str) -> None:
        """
        Give a topic this setting, and no other of its own; brokers take it up a little later.

        Raises:
            PreconditionError: the change was refused, or was not answered in time.
        """


class TargetClients(Protocol):
    """The clients of a target."""

    @property
    def names(self) -> Sequence[str]:
        """The clients that a run may have; the first one sends no record twice."""

    @property
    def creates(self) -> bool:
        """Whether they make topics, of any partitions; else the system has one partition from the start."""

    @property
    def killable(self) -> bool:
        """Whether a client may have a process of its own, which can be killed."""

    def unsendable(self, acks: int, codec: str) -> str:
        """Return what of this the run's client cannot say when it sends, "" if it can say all."""

    def fit(self, plans: Clients) -> Clients:
        """Return a workload's clients as they can be had; those that cannot are left out."""

    def own(self, rules: Mapping[str, str]) -> str:
        """Return the client of a run with these rules that names none."""

    def make(
        self, name: str, *, history: History, bootstrap: Callable[[], Sequence[str]], ledger: Ledger | None = None
    ) -> Client:
        """
        Return a run's client.

        Args:
            history: what it does is recorded here.
            bootstrap: returns "host:port" of the running nodes; called again for each call.
            ledger: the run's, which has every process of its clients; None: they have no processes.

        Raises:
            UsageError: there is no client of that name.
        """

    def require(self, name: str) -> None:
        """Raise UsageError if this machine lacks what a client stands on; asked before anything is opened."""

    def lacking(self, plans: Clients) -> Mapping[Library, str]:
        """Return, of each library that plans name and this machine cannot have, why, and what to do."""

    def untold(self, plans: Clients) -> tuple[str, ...]:
        """Return the producers that are not told at which offset a record was acknowledged."""

    def impossible(self, plans: Clients, own: str) -> Iterator[str]:
        """Yield, for each planned client that is impossible beside a run's own, why; a lack is no such reason."""

    def serves(self, address: str) -> bool:
        """Return True if the node at "host:port" answers clients."""

    def leads(self, address: str, topic: str, partition: int) -> bool:
        """Return True if the node at "host:port" says itself that it leads the partition, to clients too."""

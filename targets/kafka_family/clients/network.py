"""
The network of one client of a workload: a connection to each node that it uses, and what it believes of leaders.

A client keeps its belief until an answer or a lost connection contradicts it, as Kafka's clients do: so it asks
nodes that lead no more, and believes nodes that do not know it yet.
Source:  Apache Kafka, clients/.../Metadata.java and NetworkClient.java.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from harness.workload.plan import Place
from targets.kafka_family.clients import questions
from targets.kafka_family.clients.connection import Connection, NoAnswer, NotSent

T = TypeVar("T")

# How long one node's metadata are waited for, before another is asked: the node may be paused.
METADATA_S_MAX: Final = 0.5
# How long a client waits before it asks again who leads, or sends again.
BACKOFF_S: Final = 0.05


class Network:
    """
    A client's connections and beliefs.

    Args:
        client_id: as brokers see it.
        places: the partitions whose leaders it wants to know.
        nodes: a node's name -> "host:port".
        choose: returns the node that is asked for metadata.
    """

    def __init__(
        self,
        client_id: str,
        places: Sequence[Place],
        nodes: Mapping[str, str],
        choose: Callable[[Sequence[str]], str],
    ) -> None:
        self._client_id = client_id
        self._places = places
        self._nodes = nodes
        self._names = {address: name for name, address in nodes.items()}
        self._choose = choose
        self._open: dict[str, Connection] = {}
        self._leaders: dict[Place, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for name in list(self._open):
            self._drop(name)

    # --- questions -------------------------------------------------------------------------------------------
    def ask(self, node: str, within_s: float, question: Callable[[Connection], T]) -> T:
        """
        Ask a node; a connection without an answer is closed, and whoever it led is forgotten.

        Args:
            within_s: for the connection, if there is none yet, and the answer.

        Raises:
            NotSent: it cannot connect.
            NoAnswer: no valid answer came in time.
        """
        try:
            return question(self._connection(node, time.monotonic() + within_s))
        except (NotSent, NoAnswer):
            self._lose(node)
            raise

    def ask_any(self, question: Callable[[Connection], T], within_s: float = METADATA_S_MAX) -> T:
        """Ask any node, as `ask` does."""
        return self.ask(self._choose(list(self._nodes)), within_s, question)

    def _connection(self, node: str, deadline: float) -> Connection:
        found = self._open.get(node)
        if found is not None and found.over:
            self._lose(node)
            found = None
        if found is None:
            address = self._nodes.get(node, node)
            found = self._open[node] = Connection(address, self._client_id, deadline)
        found.deadline = deadline
        return found

    def _lose(self, node: str) -> None:
        """Close the connection to a node, and forget what it leads: somebody else may lead when it is back."""
        self._drop(node)
        self.forget([place for place, leader in self._leaders.items() if leader == node])

    def _drop(self, node: str) -> None:
        connection = self._open.pop(node, None)
        if connection is not None:
            connection.close()

    # --- beliefs ---------------------------------------------------------------------------------------------
    def leader(self, place: Place) -> str | None:
        """Return the node that is believed to lead a partition, None if none is known."""
        return self._leaders.get(place)

    def forget(self, places: Iterable[Place]) -> None:
        """Forget who leads these partitions."""
        for place in places:
            self._leaders.pop(place, None)

    def refresh(self, within_s: float = METADATA_S_MAX) -> str:
        """Ask one node who leads, if a leader is unknown, and believe it; return why it did not answer, or ""."""
        if all(place in self._leaders for place in self._places):
            return ""
        try:
            found = self.ask_any(
                lambda connection: questions.leaders(connection, self._places), min(within_s, METADATA_S_MAX)
            )
        except (NotSent, NoAnswer) as error:
            return str(error)
        # A node outside of the plan, or one with an address that clients do not use, is known by its address.
        self._leaders = {place: self._names.get(address, address) for place, address in found.items()}
        return ""

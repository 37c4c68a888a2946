"""A library of a system's users, beside its plain client: some of a workload's clients stand on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.clients.library import Reader, Sender
from harness.workload.plan import Clients, ConsumerPlan, ProducerPlan


class Beside(Protocol):
    """
    The library.

    Its producers may send again by themselves.

    Attributes:
        tells_offsets: whether its producers are told at which offset a record was acknowledged. If not, an outcome
            has no `base`, and the judge looks for the value.
    """

    tells_offsets: bool

    def why_not(self) -> str:
        """Return why this machine lacks it, "" if it has it."""

    def sends(self, plan: ProducerPlan, plans: Clients) -> bool:
        """Return whether a producer of a workload stands on it."""

    def reads(self, plan: ConsumerPlan, plans: Clients) -> bool:
        """Return whether a consumer of a workload stands on it."""

    def sender(self, plan: ProducerPlan, addresses: Sequence[str]) -> Sender:
        """Return a producer, which begins at the nodes at these addresses; raise nothing."""

    def reader(self, plan: ConsumerPlan, addresses: Sequence[str]) -> Reader:
        """Return a consumer."""

"""A library of a system's users, beside its plain client: some of a workload's clients stand on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.clients.children import Children
from harness.clients.library import Reader, Sender
from harness.launch import Address
from harness.workload.plan import Clients, ConsumerPlan, ProducerPlan, Via


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """
    What a client of a run finds there.

    Attributes:
        nodes: node -> "host:port", where it answers clients.
        services: where each process of the target's services answers, by kind.
        children: starts processes of the run; None: the run has none.
    """

    nodes: Mapping[str, str]
    services: Mapping[str, Sequence[Address]] = field(default_factory=dict)
    children: Children | None = None

    @property
    def addresses(self) -> Sequence[str]:
        """Those of the nodes."""
        return tuple(self.nodes.values())


class Beside(Protocol):
    """
    The library.

    Its producers may send again by themselves.

    Attributes:
        tells_offsets: whether its producers are told at which offset a record was acknowledged. If not, an outcome
            has no `base`, and the judge looks for the value.
        knows_again: whether its producers can be idempotent. If not, those of a workload that are to be so only
            send again, and the log may have a record twice.
    """

    tells_offsets: bool
    knows_again: bool

    def why_not(self) -> str:
        """Return why this machine lacks it, "" if it has it."""

    def sends(self, plan: ProducerPlan, plans: Clients) -> bool:
        """Return whether a producer of a workload stands on it."""

    def reads(self, plan: ConsumerPlan, plans: Clients) -> bool:
        """Return whether a consumer stands on it: one that follows the leaders, beside a producer that does."""
        follows = plan.via is Via.LEADER and not plan.seek
        return follows and any(self.sends(each, plans) for each in plans.producers)

    def sender(self, plan: ProducerPlan, around: Around) -> Sender:
        """Return a producer; raise nothing."""

    def reader(self, plan: ConsumerPlan, around: Around) -> Reader:
        """Return a consumer."""

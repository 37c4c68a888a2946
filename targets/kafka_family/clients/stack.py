"""A client library as a value: how its producers and consumers are made, and what it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from harness.workload.plan import ConsumerPlan, ProducerPlan

if TYPE_CHECKING:  # with processes, which a command that only asks what is installed does not need
    from harness.clients.children import Children
    from harness.clients.library import Reader, Sender


class MakeSender(Protocol):
    """Makes a library's producer, which connects when it is used."""

    def __call__(
        self, plan: ProducerPlan, addresses: Iterable[str], process: str, children: Children | None, /
    ) -> Sender:
        """Return the producer of a plan; brokers see the process as its name."""


class MakeReader(Protocol):
    """Makes a library's consumer, which connects when it is used."""

    def __call__(
        self, plan: ConsumerPlan, addresses: Iterable[str], process: str, children: Children | None, /
    ) -> Reader:
        """Return the consumer of a plan; brokers see the process as its name."""


def lacks_nothing() -> str:
    """Return "": the library is a package that every environment has."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """
    A client library; every module that has one calls it STACK.

    Attributes:
        codecs: those that it can write and read here.
        lacks: returns why this machine cannot have it, and what to do; "" if it can.
        has_processes: each of its clients is a process beside the run, started with the run's `children`.
    """

    sender: MakeSender
    reader: MakeReader
    codecs: tuple[str, ...]
    lacks: Callable[[], str] = lacks_nothing
    has_processes: bool = False

"""A client library as a value: how its producers and consumers are made, and what it cannot do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from harness.workload.plan import ConsumerPlan, ProducerPlan
from workloads.clients.library import Reader, Sender


class MakeSender(Protocol):
    """Makes a library's producer, which connects when it is used."""

    def __call__(self, plan: ProducerPlan, addresses: Iterable[str], process: str, /) -> Sender:
        """Return the producer of a plan; brokers see the process as its name."""


class MakeReader(Protocol):
    """Makes a library's consumer, which connects when it is used."""

    def __call__(self, plan: ConsumerPlan, addresses: Iterable[str], process: str, /) -> Reader:
        """Return the consumer of a plan; brokers see the process as its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """
    A client library; every module that has one calls it STACK.

    Attributes:
        codecs: those that it can write and read here.
    """

    sender: MakeSender
    reader: MakeReader
    codecs: tuple[str, ...]

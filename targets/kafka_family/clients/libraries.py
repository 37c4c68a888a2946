"""
Which clients are impossible on real nodes, and which libraries this machine lacks.

A library's module is imported when a plan needs it; nothing here speaks Kafka's wire, so that a command which only
asks starts without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness import extras
from harness.model import UsageError
from harness.registry import load
from harness.workload.plan import Clients, ConsumerPlan, Library, ProducerPlan, Via
from targets.kafka_family.clients.stack import Stack

# Where a library's STACK is; a module is imported when a plan needs its library.
STACKS: Final[Mapping[str, str]] = {
    Library.LIBRDKAFKA: "targets.kafka_family.clients.librdkafka_work",
    Library.KAFKA_PYTHON: "targets.kafka_family.clients.kafka_python_work",
    Library.AIOKAFKA: "targets.kafka_family.clients.aiokafka_work",
    Library.JAVA: "targets.kafka_family.clients.java_work",
}
# The module of each that is a Python package.
MODULES: Final[Mapping[Library, str]] = {
    Library.LIBRDKAFKA: "confluent_kafka",
    Library.KAFKA_PYTHON: "kafka",
    Library.AIOKAFKA: "aiokafka",
}


def stack_of(library: Library) -> Stack:
    """Return a library, which is installed; there is none for `raw`."""
    require_installed(library)
    found: Stack = load("client", STACKS, library, "STACK")
    return found


def require_installed(library: Library) -> None:
    """Raise UsageError if a library's package is not installed."""
    if why := _not_installed(library):
        raise UsageError(f"client {library}: {why}")


def _not_installed(library: Library) -> str:
    return extras.lacks("kafka", MODULES[library]) if library in MODULES else ""


def lacking(clients: Clients) -> Mapping[Library, str]:
    """Return, of each library that plans name and this machine cannot have, why, and what to do."""
    named = (library for library in clients.libraries if library is not Library.RAW)
    found = {library: _not_installed(library) or stack_of(library).lacks() for library in named}
    return {library: why for library, why in found.items() if why}


def impossible(clients: Clients, own: Library) -> Iterator[str]:
    """Yield, for each client that is impossible on real nodes, why it is; what is not installed is `lacking`."""
    if why := _not_installed(own):
        yield f"client {own}: {why}"
        return
    both: tuple[ProducerPlan | ConsumerPlan, ...] = (*clients.producers, *clients.consumers)
    if own is Library.LIBRDKAFKA:  # the target's brokers know no record batches
        for either in both:
            if either.client not in (None, own):
                why = f"{either.name} with brokers older than 0.11; expected client {own}, or none"
                yield f"client {either.client}: {why}"
        for churner in clients.churners:
            yield f"churner {churner.name} with brokers older than 0.11; expected none: its requests are newer"
    for killed in both:
        library = killed.client or own
        if killed.kill_after is not None and library is not Library.RAW and stack_of(library).has_processes:
            yield (
                f"client {library}: {killed.name} kill_after=…; expected none: its library has a process of its "
                "own, which would outlive the client"
            )
    written = {codec for plan in clients.producers for codec in plan.codecs}
    for plan in clients.consumers:
        library = plan.client or own
        if library is Library.RAW:
            continue
        if plan.via is not Via.LEADER:
            yield (
                f"client {library}: consumer {plan.name} via={plan.via}; expected via={Via.LEADER}, or a "
                f"client that can choose the broker to ask: {Library.RAW}"
            )
        yield from _codecs(library, f"consumer {plan.name} of records in codecs", written)
    for each in clients.producers:
        if (library := each.client or own) is not Library.RAW:
            yield from _codecs(library, f"producer {each.name} codecs", each.codecs)


def _codecs(library: Library, who: str, codecs: set[str] | tuple[str, ...]) -> Iterator[str]:
    known = stack_of(library).codecs
    if unknown := sorted(set(codecs) - set(known)):
        yield f"client {library}: {who}={','.join(unknown)}; expected of {', '.join(known)}, which it has here"

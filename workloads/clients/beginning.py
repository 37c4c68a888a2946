"""
Begins a workload's clients on real nodes, each on its library, and refuses those that are impossible.

The client `raw` is of this repository: it alone can choose the node that it asks. The others are libraries, which
workloads/clients/library.py makes do what a plan says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from harness.history.file import History
from harness.model import UsageError
from harness.registry import load
from harness.workload.plan import Clients, ConsumerPlan, Library, ProducerPlan, Via
from workloads.clients.consuming import Consumer
from workloads.clients.events import Recorder
from workloads.clients.library import LibraryConsumer, LibraryProducer
from workloads.clients.producing import Producer
from workloads.clients.stack import Stack
from workloads.clients.threads import Threads, Work

# Where a library's STACK is; a module is imported when a plan needs its library.
STACKS: Final[Mapping[str, str]] = {
    Library.LIBRDKAFKA: "workloads.clients.librdkafka_work",
    Library.KAFKA_PYTHON: "workloads.clients.kafka_python_work",
    Library.AIOKAFKA: "workloads.clients.aiokafka_work",
}


def begin(
    clients: Clients,
    seed: int,
    *,
    own: Library,
    process: Callable[[], str],
    history: History,
    nodes: Mapping[str, str],
) -> Threads:
    """
    Start each producer and consumer in a thread of its own, as one process of the history.

    Args:
        own: the library of the plans that name none.
        process: returns the name of the next process.
        nodes: a node's name -> "host:port".

    Raises:
        UsageError: a client is impossible; nothing was started.
    """
    for why in impossible(clients, own):
        raise UsageError(why)

    def work(plan: ProducerPlan | ConsumerPlan) -> Work:
        return work_of(plan, seed, own=own, process=process(), history=history, nodes=nodes)

    return Threads(
        history,
        producers={plan.name: work(plan) for plan in clients.producers},
        consumers={plan.name: work(plan) for plan in clients.consumers},
    )


def work_of(
    plan: ProducerPlan | ConsumerPlan,
    seed: int,
    *,
    own: Library,
    process: str,
    history: Recorder,
    nodes: Mapping[str, str],
) -> Work:
    """Return what one client does; it records as this process."""
    library = plan.client or own
    if library is Library.RAW:
        kind = Producer if isinstance(plan, ProducerPlan) else Consumer
        work: Work = kind(plan, seed, process=process, history=history, nodes=nodes).run  # type: ignore[arg-type]
        return work
    stack, addresses = stack_of(library), list(nodes.values())
    if isinstance(plan, ProducerPlan):
        sender = stack.sender(plan, addresses, process)
        return LibraryProducer(plan, seed, process=process, history=history, sender=sender).run
    reader = stack.reader(plan, addresses, process)
    return LibraryConsumer(plan, seed, process=process, history=history, reader=reader).run


def stack_of(library: Library) -> Stack:
    """Return a library; there is none for `raw`."""
    found: Stack = load("client", STACKS, library, "STACK")
    return found


def impossible(clients: Clients, own: Library) -> Iterator[str]:
    """Yield, for each client that is impossible on real nodes, why it is."""
    if own is Library.LIBRDKAFKA:  # the target's brokers know no record batches
        both: tuple[ProducerPlan | ConsumerPlan, ...] = (*clients.producers, *clients.consumers)
        for either in both:
            if either.client not in (None, own):
                why = f"{either.name} with brokers older than 0.11; expected client {own}, or none"
                yield f"client {either.client}: {why}"
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

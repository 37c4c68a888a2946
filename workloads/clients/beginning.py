"""
Begins a workload's clients on real nodes, each on its library, and refuses those that are impossible.

The client `raw` is of this repository: it alone can choose the node that it asks. The others are libraries, which
workloads/clients/library.py makes do what a plan says. A client that is to be killed has a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from harness import extras
from harness.cleanup.ledger import Ledger
from harness.history.file import History
from harness.model import UsageError
from harness.registry import load
from harness.workload.plan import ChurnPlan, Clients, ConsumerPlan, Library, ProducerPlan, Via
from harness.workload.script import FIRST, Life
from workloads.clients.children import Children
from workloads.clients.churning import Churner
from workloads.clients.consuming import Consumer
from workloads.clients.events import Recorder
from workloads.clients.library import LibraryConsumer, LibraryProducer
from workloads.clients.lives import Lives
from workloads.clients.producing import Producer
from workloads.clients.stack import Stack
from workloads.clients.threads import Threads, Work

# Where a library's STACK is; a module is imported when a plan needs its library.
STACKS: Final[Mapping[str, str]] = {
    Library.LIBRDKAFKA: "workloads.clients.librdkafka_work",
    Library.KAFKA_PYTHON: "workloads.clients.kafka_python_work",
    Library.AIOKAFKA: "workloads.clients.aiokafka_work",
    Library.JAVA: "workloads.clients.java_work",
}
# The module of each that is a Python package.
MODULES: Final[Mapping[Library, str]] = {
    Library.LIBRDKAFKA: "confluent_kafka",
    Library.KAFKA_PYTHON: "kafka",
    Library.AIOKAFKA: "aiokafka",
}


def begin(
    clients: Clients,
    seed: int,
    *,
    own: Library,
    process: Callable[[], str],
    history: History,
    nodes: Mapping[str, str],
    ledger: Ledger | None = None,
) -> Threads:
    """
    Start each client in a thread of its own, as one process of the history; a churner is always on plain sockets.

    The thread of one that is to be killed starts its processes, kills them, and records what they say. This
    returns once each has a process that works: before that a schedule would have nothing to disturb.

    Args:
        own: the library of the plans that name none.
        process: returns the name of the next process.
        nodes: a node's name -> "host:port".
        ledger: the run's; None: no client may have a process of its own.

    Raises:
        UsageError: a client is impossible; nothing was started.
    """
    for why in impossible(clients, own):
        raise UsageError(why)
    for library, why in lacking(clients).items():
        raise UsageError(f"client {library}: {why}")

    if clients.killed and ledger is None:
        raise UsageError(f"clients {', '.join(clients.killed)}: kill_after=…; expected a run with a ledger")

    lives: list[Lives] = []
    children = None if ledger is None else Children.of(ledger, history.path)

    def work(plan: ProducerPlan | ConsumerPlan) -> Work:
        if plan.kill_after is None or ledger is None:
            return work_of(plan, seed, own=own, process=process(), history=history, nodes=nodes, children=children)
        lives.append(
            Lives(
                plan, seed, own=own, first=process(), process=process, history=history, nodes=nodes, ledger=ledger
            )
        )
        return lives[-1].run

    def churn(plan: ChurnPlan) -> Work:
        return Churner(plan, seed, process=process(), history=history, nodes=nodes).run

    threads = Threads(
        history,
        producers={
            **{plan.name: work(plan) for plan in clients.producers},
            **{plan.name: churn(plan) for plan in clients.churners},
        },
        consumers={plan.name: work(plan) for plan in clients.consumers},
        mortals=lives,
    )
    for each in lives:
        each.await_work()
    return threads


def work_of(
    plan: ProducerPlan | ConsumerPlan,
    seed: int,
    *,
    own: Library,
    process: str,
    history: Recorder,
    nodes: Mapping[str, str],
    life: Life = FIRST,
    children: Children | None = None,
) -> Work:
    """Return what one client does in one life; it records as this process."""
    library = plan.client or own
    if library is Library.RAW:
        kind = Producer if isinstance(plan, ProducerPlan) else Consumer
        work: Work = kind(plan, seed, process=process, history=history, nodes=nodes, life=life).run  # type: ignore[arg-type]
        return work
    stack, addresses = stack_of(library), list(nodes.values())
    if isinstance(plan, ProducerPlan):
        sender = stack.sender(plan, addresses, process, children)
        return LibraryProducer(plan, seed, process=process, history=history, sender=sender, life=life).run
    reader = stack.reader(plan, addresses, process, children)
    return LibraryConsumer(plan, seed, process=process, history=history, reader=reader, life=life).run


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

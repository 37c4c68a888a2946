"""
Begins a workload's clients on real nodes, each on its library, and refuses those that are impossible.

The client `raw` is of this repository: it alone can choose the node that it asks. The others are libraries, which
harness/clients/library.py makes do what a plan says. A client that is to be killed has a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from harness.cleanup.ledger import Ledger
from harness.clients.children import Children
from harness.clients.events import Recorder
from harness.clients.library import LibraryConsumer, LibraryProducer
from harness.clients.lives import Lives
from harness.clients.threads import Threads, Work
from harness.history.file import History
from harness.logs.record import sent_digest
from harness.model import UsageError
from harness.workload.plan import ChurnPlan, Clients, ConsumerPlan, Library, ProducerPlan
from harness.workload.script import FIRST, Life
from targets.kafka_family.clients.churning import Churner
from targets.kafka_family.clients.consuming import Consumer
from targets.kafka_family.clients.libraries import impossible, lacking, stack_of
from targets.kafka_family.clients.producing import Producer

# The process of a client that is to be killed.
PROGRAM: Final = "targets.kafka_family.clients.life"


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
                plan,
                seed,
                program=PROGRAM,
                own=own,
                first=process(),
                process=process,
                history=history,
                nodes=nodes,
                ledger=ledger,
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
        return LibraryProducer(
            plan, seed, process=process, history=history, sender=sender, digest=sent_digest, life=life
        ).run
    reader = stack.reader(plan, addresses, process, children)
    return LibraryConsumer(plan, seed, process=process, history=history, reader=reader, life=life).run

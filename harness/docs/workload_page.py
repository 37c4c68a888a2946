"""Print docs/workloads.md, from the table of workloads."""

from __future__ import annotations

import inspect
from typing import Final

from harness.docs import markdown
from harness.workload.lives import OPS_LATER_MAX
from harness.workload.plan import Library, Place
from harness.workload.text import line_of
from targets.kafka_family.clients.java_home import RELEASE
from workloads import WORKLOADS
from workloads.definition import FINAL_READS, Definition

# The plans on the page are those of this seed, for these partitions.
SEED: Final = 1
PLACES: Final = (Place("log", 0), Place("orders", 0))
NODES: Final = ("A", "B", "C", "D")


def workloads() -> str:
    """Return docs/workloads.md."""
    rows = [(f"[`{name}`](#{name})", each.doc, _checkers(each)) for name, each in WORKLOADS.items()]
    return markdown.page(
        "Workloads",
        "workloads/__init__.py",
        "A workload is what producers and consumers do while faults are injected.\n"
        "Its clients are plans, drawn from the run's seed for the partitions of the run; a schedule has one a "
        "line, as below.\n"
        "Producers and consumers are processes of the history, one each, for the whole run, unless they are "
        "killed.",
        markdown.table(("workload", "is for", "judged above all by"), rows),
        f"All checkers judge every run.\nFinal reads, {FINAL_READS}.",
        "On real nodes each client is a thread with connections of its own (`targets/kafka_family/clients`).\n"
        "It keeps its belief of who leads until an answer or a lost connection contradicts it, and then asks any "
        "node, which may not know it yet: so requests go to nodes that lead no more.\n"
        "Each request is one op for each record, or for each partition that is polled, and nothing is repeated "
        "silently: a producer with `retries` has one invocation and one outcome for all of its tries, which is "
        "`info` if one of them may have been appended and none was acknowledged.\n"
        "A consumer has no group. It assigns its partitions, and begins at 0 when its position is out of range.",
        "A client with `kill_after=` is a process of the operating system, a child of the run that is in its "
        "ledger, on whatever real host the nodes are: as other clients, it is outside of containers.\n"
        "It writes each op to the run, and sends a request only once its invoke is in the history, whose clock is "
        "that of all; so an op that a kill cuts off is there, without an outcome, and gets one: `info`, or `fail` "
        "of a poll.\n"
        "It is killed (SIGKILL) because of what was seen: so many acknowledged records, or polls that brought "
        "records, and then, from its next request on, as many ops of the history as the seed draws, up to "
        f"{OPS_LATER_MAX}.\n"
        "`client-killed` has the evidence; a kill that does not bite makes the run unknown, and so does a process "
        "that ends by itself, a line of it that is torn elsewhere than at its very end, and a next life that does "
        "not begin where the last one was recorded to have read to.\n"
        "A client whose run is gone ends itself.\n"
        "In the simulator it is a process of the world: a kill closes its connections, what it had sent arrives "
        "all the same, and the next process has everything to ask. The history has the same ops.",
        "A plan may name the library that its client stands on (`client=`): "
        f"{', '.join(f'`{library}`' for library in Library)}; without one it is the client of the target. "
        "In the simulator its own client stands for `raw`. All others need real nodes: a workload goes without "
        "them there, and the command says so; `mixed`, which is about them, is refused with exit code 2, as are "
        "schedules that name one, and runs with a codec or a `via` that a library does not have.\n"
        "What an error proves differs from library to library; the first lines of "
        "`targets/kafka_family/clients/*_work.py` say it. Retries are off unless the plan has some, and "
        "idempotence unless the plan has it (`idempotent=yes`): then a batch keeps its numbers in every try, "
        "the run's `setup` names the producer, "
        "and a record of it that is in a log twice is a `duplicate`. Where brokers know no producer ids (`hw`, "
        "and Apache Kafka up to 0.10), it is not idempotent. Two things cannot be switched "
        "off: librdkafka sends a record again that was refused by a broker that leads no more, and aiokafka, once "
        "a plan has `retries`, tries as often as the time allows.\n"
        "`kafka-python` has the codecs none and gzip here. A churner is always on plain sockets: it asks the node "
        "that metadata names as the controller, once, and a refusal that says so did nothing. On real nodes its "
        "time is longer than its line says, by the same factor as the time in which a cluster must be healed. "
        "Apache Kafka acknowledges a delete before the topic is gone, and may refuse the next create with "
        "TOPIC_ALREADY_EXISTS: rule `generations` knows it (trait `deletes_later` in `setup`).",
        "`java` is Apache Kafka's own producer and consumer. Each is a process of the operating system, a Java "
        "with a heap of 64 MB; it is a child of the run, in its ledger, asked over a pipe, and ends itself once "
        "its run is gone. It has the codecs none and gzip here, and no `kill_after`.\n"
        f"It needs a Java compiler (`javac`) and the jars that `fencepost kafka fetch {RELEASE}` brings; "
        "`targets/kafka_family/clients/java/Client.java` is compiled once, and its classes are kept beside the "
        "jars.\n"
        "A workload goes without the clients that a machine cannot have: the others are drawn as always, and the "
        "command says in one line which are left out, why, and what to do. A schedule that names them is refused "
        "there with exit code 2.",
        "All libraries but `raw` fetch in the background, from leaders alone, and do not tell from which "
        "node: `node` is empty in their polls.\n"
        "What a poll brings was fetched before it ended, perhaps before it began; a poll that brings nothing "
        "fails, since nobody knows whether a node answered.\n"
        "A high watermark is that of the last answer, and is left out where it is below what came.",
        *(part for name, each in WORKLOADS.items() for part in _section(name, each)),
    )


def _section(name: str, each: Definition) -> list[str]:
    plan = each.clients(PLACES, seed=SEED)
    lines = [
        *(f"producer {line_of(producer)}" for producer in plan.producers),
        *(f"consumer {line_of(consumer)}" for consumer in plan.consumers),
        *(f"churner {line_of(churner)}" for churner in each.churners(NODES, seed=SEED)),
    ]
    module = inspect.getmodule(each.clients)
    assert module is not None, f"workload {name}: its clients are drawn by no function of a module"
    said = inspect.getdoc(module) or ""
    parts = [f"## {name}", f"```text\n{said}\n```", f"With seed {SEED} on {' and '.join(map(str, PLACES))}:"]
    own = [] if each.final_reads == FINAL_READS else [f"Final reads: {each.final_reads}."]
    return [*parts, "```text\n" + "\n".join(lines) + "\n```", *own]


def _checkers(each: Definition) -> str:
    return ", ".join(f"`{checker}`" for checker in each.checkers)

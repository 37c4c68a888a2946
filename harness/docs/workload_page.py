"""Print docs/workloads.md, from the table of workloads."""

from __future__ import annotations

import inspect
from typing import Final

from harness.docs import markdown
from harness.workload.plan import Library, Place
from harness.workload.text import line_of
from workloads import WORKLOADS
from workloads.definition import FINAL_READS, Definition

# The plans on the page are those of this seed, for these partitions.
SEED: Final = 1
PLACES: Final = (Place("log", 0), Place("orders", 0))


def workloads() -> str:
    """Return docs/workloads.md."""
    rows = [(f"[`{name}`](#{name})", each.doc, _checkers(each)) for name, each in WORKLOADS.items()]
    return markdown.page(
        "Workloads",
        "workloads/__init__.py",
        "A workload is what producers and consumers do while faults are injected.\n"
        "Its clients are plans, drawn from the run's seed for the partitions of the run; a schedule has one a "
        "line, as below.\n"
        "Producers and consumers are processes of the history, one each, for the whole run.",
        markdown.table(("workload", "is for", "judged above all by"), rows),
        f"All checkers judge every run.\nFinal reads, {FINAL_READS}.",
        "On real nodes each client is a thread with connections of its own (`workloads/clients`).\n"
        "It keeps its belief of who leads until an answer or a lost connection contradicts it, and then asks any "
        "node, which may not know it yet: so requests go to nodes that lead no more.\n"
        "Each request is one op for each record, or for each partition that is polled, and nothing is repeated "
        "silently: a producer with `retries` has one invocation and one outcome for all of its tries, which is "
        "`info` if one of them may have been appended and none was acknowledged.\n"
        "A consumer has no group. It assigns its partitions, and begins at 0 when its position is out of range.",
        "A plan may name the library that its client stands on (`client=`): "
        f"{', '.join(f'`{library}`' for library in Library)}; without one it is the client of the target. "
        "Clients with a library of their own need real nodes: the simulator refuses them with exit code 2, and so "
        "does every run with a codec or a `via` that a library does not have.\n"
        "What an error proves differs from library to library; the first lines of `workloads/clients/*_work.py` "
        "say it. Retries are off unless the plan has some, and idempotence is off. Two things cannot be switched "
        "off: librdkafka sends a record again that was refused by a broker that leads no more, and aiokafka, once "
        "a plan has `retries`, tries as often as the time allows.\n"
        "`kafka-python` has the codecs none and gzip here. No client on real nodes creates and deletes topics: a "
        "schedule with churners is refused there.",
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
    ]
    module = inspect.getmodule(each.clients)
    assert module is not None, f"workload {name}: its clients are drawn by no function of a module"
    said = inspect.getdoc(module) or ""
    parts = [f"## {name}", f"```text\n{said}\n```", f"With seed {SEED} on {' and '.join(map(str, PLACES))}:"]
    own = [] if each.final_reads == FINAL_READS else [f"Final reads: {each.final_reads}."]
    return [*parts, "```text\n" + "\n".join(lines) + "\n```", *own]


def _checkers(each: Definition) -> str:
    return ", ".join(f"`{checker}`" for checker in each.checkers)

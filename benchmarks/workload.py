"""
Measure a workload on real processes: `python -m benchmarks.workload [--seconds N] [--workload NAME]`.

It plays a run of our broker in which no fault is injected: three brokers on this machine, one partition that all
replicate and two that two of them do, and the workload's clients for N seconds. It prints how much they polled,
read and sent a second, and how long the judgement of the history takes in this process, in processor time. A run
must be judged in less time than it was played in: else a night of runs could not be judged the day after.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from checkers.judge import judge
from harness.ending import Parser, end, whole_number
from harness.environment.real import RealEnvironment
from harness.events import Poll, Produce
from harness.history.file import history_ops
from harness.hosts import HOSTS
from harness.model import FencepostError, Op, OpType
from harness.registry import pick
from harness.run.player import Player
from harness.run.result import RunResult, Status
from harness.run.spec import NO_VIOLATION, RunSpec
from harness.run.store import create_suite
from harness.scenario.file import Scenario, Step, draw
from harness.scenario.steps import Pass
from harness.scenario.variant import Variant
from harness.target.found import target as target_of
from harness.workload.plan import Place
from nemesis import faults_of
from workloads import WORKLOADS

SECONDS_MAX: Final = 3_600
PROTOCOL: Final = "kip380"
FURTHER: Final = {Place("log", 1): ("B", "C"), Place("orders", 0): ("C", "A")}
MAIN: Final = Place("log", 0)
NS_PER_S: Final = 1_000_000_000


@dataclass(slots=True, kw_only=True)
class Figures:
    """
    What a run's clients did, and how long it took to judge.

    Attributes:
        ops: of the whole history.
        polls: how many brought records or nothing; failed: those that were refused, or not answered.
        read, read_bytes: records that polls brought, each time that they did, and the bytes of their values.
        sent, acknowledged, sent_bytes: records that were sent, those with an ok, and the bytes of all values.
        worked_s: from the first op of a client to the last.
        judged_s: the processor time to read the history and apply all rules.
    """

    ops: int = 0
    polls: int = 0
    failed: int = 0
    read: int = 0
    read_bytes: int = 0
    sent: int = 0
    acknowledged: int = 0
    sent_bytes: int = 0
    worked_s: float = 0.0
    judged_s: float = 0.0


def spec_of(workload: str, seconds: int, seed: int) -> RunSpec:
    """Return the run: three brokers, three partitions, the workload's clients, and a step in which time passes."""
    target = target_of("broker")
    places = (MAIN, *FURTHER)
    scenario = Scenario(
        name=workload,
        title=f"{workload} for {seconds} s without a fault",
        sources=(),
        replicas=("A", "B", "C"),
        nodes=("A", "B", "C"),
        records=(),
        steps=(Step(line=1, act=Pass(Decimal(1000 * seconds))),),
        expectations={PROTOCOL: NO_VIOLATION},
        further=FURTHER,
        clients=pick("workload", WORKLOADS, workload).clients(places, seed=seed),
    )
    return RunSpec(
        target=target.name,
        host="local",
        variant=Variant(protocol=PROTOCOL),
        rules=target.rules(PROTOCOL, ()),
        traits=target.traits(PROTOCOL, ()),
        scenario=scenario,
        draw=draw(scenario, seed),
    )


def measure(spec: RunSpec, folder: Path) -> tuple[Figures, RunResult]:
    """Play the run below the folder, count what its clients did, and judge it."""
    with ExitStack() as stack:
        target = target_of(spec.target)
        environment = RealEnvironment(spec.host, make_host=HOSTS[spec.host], target=target, client="raw")
        stack.callback(environment.close)
        environment.open(folder / "environment")
        run = create_suite(folder, "workload").create_run(spec.name)
        Player(environment=environment, faults=faults_of(target)).play(spec, run)
    began = time.process_time()
    ops = list(history_ops(run.history))
    result = judge(spec, ops)
    judged_s = time.process_time() - began
    figures = counted(ops)
    figures.judged_s = judged_s
    return figures, result


def counted(ops: Sequence[Op]) -> Figures:
    """Return what the clients of a run did."""
    found = Figures(ops=len(ops))
    times: list[int] = []
    for op in ops:
        match op.event:
            case Produce(value=value) if op.type is OpType.INVOKE:
                found.sent += 1
                found.sent_bytes += len(value)
            case Produce():
                found.acknowledged += op.type is OpType.OK
            case Poll(records=records) if op.type is not OpType.INVOKE:
                found.polls += op.type is OpType.OK
                found.failed += op.type is not OpType.OK
                found.read += len(records or ())
                found.read_bytes += sum(len(value) for _, value in records or ())
            case _:
                continue
        times.append(op.time_ns)
    found.worked_s = (times[-1] - times[0]) / NS_PER_S if times else 0.0
    return found


def table_of(name: str, found: Figures) -> Table:
    """Return the figures as a table."""
    table = Table(title=f"{name}: {found.ops:,} ops, clients at work for {found.worked_s:.1f} s")
    table.add_column("figure")
    table.add_column("all", justify="right")
    table.add_column("a second", justify="right")
    for what, count in (
        ("polls that were answered", found.polls),
        ("polls that failed", found.failed),
        ("records that polls brought", found.read),
        ("bytes of their values", found.read_bytes),
        ("records sent", found.sent),
        ("records acknowledged", found.acknowledged),
        ("bytes of the values sent", found.sent_bytes),
    ):
        table.add_row(what, f"{count:,}", f"{count / found.worked_s:,.0f}")
    table.add_row("judged in, s of a processor", f"{found.judged_s:.1f}", "")
    table.add_row("judged / played", f"{found.judged_s / found.worked_s:.2f}", "")
    return table


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the table."""
    parser = Parser(prog="python -m benchmarks.workload", description="Measure a workload on real processes.")
    seconds, seed = whole_number(1, SECONDS_MAX), whole_number(0, 2**31)
    parser.add_argument("--seconds", type=seconds, default=20, help="how long the clients work (default: 20)")
    parser.add_argument("--seed", type=seed, default=1, help="draws the clients (default: 1)")
    parser.add_argument("--workload", default="append", help=f"one of {', '.join(WORKLOADS)} (default: append)")
    return end("benchmarks.workload", lambda: _measure(parser.parse_args(arguments)))


def _measure(chosen: argparse.Namespace) -> int:
    spec = spec_of(chosen.workload, chosen.seconds, chosen.seed)
    with tempfile.TemporaryDirectory() as folder:
        found, result = measure(spec, Path(folder))
    if not found.polls or not found.acknowledged:
        raise FencepostError(
            f"{chosen.workload}: {found.polls} polls, {found.acknowledged} records; expected some"
        )
    Console().print(table_of(chosen.workload, found))
    print(f"{result.status}: found {result.found}" + (f"; {result.reason}" if result.reason else ""))
    return 0 if found.judged_s < found.worked_s and result.status is Status.AS_EXPECTED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

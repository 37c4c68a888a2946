"""Bugs planted in the codec of real brokers are found: the witnesses share no code with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import pytest

from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.wire import MUTANTS_OF_THE_CODEC
from harness import limits
from harness.anomaly import Kind
from harness.cleanup.process import until
from harness.cluster.cluster import Cluster
from harness.environment.real import RealEnvironment
from harness.events import Produce
from harness.history.file import History
from harness.launch import Address, Launch
from harness.model import Op, OpType, Verdict
from harness.run.result import RunResult
from harness.target.clients import Client
from harness.target.target import Target
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan
from targets.broker_target.target import BrokerTarget
from tests.kept import exhaustive
from tests.workloads.test_at_work import Environment, played

WIRE: Final = Path("targets/broker/wire")
AT: Final = Place("log", 0)
# First B misses what A is sent: error 7. Then B leads alone, and two must be in sync: error 19. Last, the log's
# start is deleted, so that who reads from 0 asks where it starts.
SCHEDULE: Final = """
title    Every answer that the codec of a broker may get wrong
source   this test
nodes    A B replicas, C controller
partition orders-0 C
settings min_isr=2
records  m1 3, m2 1, m3 1
{clients}
produce m1 acks=all
pause B
produce m2 acks=1 of orders-0
kill A
expire A
resume B
await leader = B
produce m3 acks=1 of orders-0
restart A
await isr = A B
delete records before end(m1)

expect kip380: none
"""
CLIENTS: Final = Clients(
    producers=(ProducerPlan(name="p1", places=(AT,), within_ms=300),),
    consumers=(ConsumerPlan(name="c1", places=(AT,)),),
)
LOST: Final = (Kind.LOST, "lost")
FALSE_ACK: Final = (Kind.FALSE_ACK, "acknowledged")
# What is found of each, and by which checker: one of these at least.
FOUND_BY: Final[dict[str, set[tuple[Kind, str]]]] = {
    # It depends on time: B may still have some of these records, at other offsets than clients were told.
    "timed-out-is-acknowledged": {LOST, FALSE_ACK},
    "too-few-replicas-is-acknowledged": {LOST},
    "produced-one-too-high": {FALSE_ACK},
    "fetched-one-too-high": {(Kind.WRONG_READ, "reads")},
    "consumed-one-too-high": {(Kind.WRONG_READ, "reads")},
    "listed-one-too-high": {(Kind.DELETED_EARLY, "deleted")},
}
# So many outcomes of the producer, of up to 3 records a request, come before the schedule goes on: one request may
# still be answered rightly after B was paused.
OUTCOMES: Final = 12


class Planted(BrokerTarget):
    """Our broker with a bug in its codec."""

    def __init__(self, mutant: str) -> None:
        self._mutant = mutant

    def launch(self, *args: Any) -> Launch:
        """Have the program install the bug first."""
        launch = super().launch(*args)
        python, module, broker, *rest = launch.argv
        assert ("-m", "targets.broker") == (module, broker)
        return replace(launch, argv=(python, module, "benchmarks.mutants.process", self._mutant, *rest))


class Patient:
    """A client whose produces with acks=1 return once the workload's producer has had some outcomes more."""

    def __init__(self, client: Client, history: History) -> None:
        self._client = client
        self._outcomes = 0
        history.listeners.append(self._listen)

    def _listen(self, op: Op) -> None:
        self._outcomes += isinstance(op.event, Produce) and op.event.name == "p1" and op.type is not OpType.INVOKE

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def produce(self, *args: Any, **options: Any) -> list[int]:
        """Produce as always, then wait."""
        offsets = self._client.produce(*args, **options)
        before = self._outcomes
        if options["acks"] == 1:
            assert until(lambda: self._outcomes - before >= OUTCOMES, limits.CONDITION_WAIT_S_MAX)
        return offsets


class Room(Environment):
    """Real nodes, whose client waits for outcomes alone: a reader may never see what a codec hides."""

    def make_client(self, cluster: Cluster) -> Client:
        """Return the patient client."""
        return cast(Client, Patient(RealEnvironment.make_client(self, cluster), cluster.history))


def play(target: Target, zookeeper: Address, folder: Path) -> RunResult:
    """Play the schedule on processes of this machine."""
    result, _ = played(CLIENTS, zookeeper, folder, environment=Room, target=target, schedule=SCHEDULE)
    return result


@pytest.mark.parametrize("mutant", MUTANTS_OF_THE_CODEC.values(), ids=lambda mutant: mutant.name)
def test_mutant_fits_its_module(mutant: Mutant) -> None:
    before = (WIRE / f"{mutant.module}.py").read_text(encoding="utf-8")
    after = mutant.applied(before)
    compile(after, mutant.name, "exec")
    assert before != after


@exhaustive
@pytest.mark.slow
def test_codec_as_it_is_is_found_right(tmp_path: Path, zookeeper: Address) -> None:
    result = play(BrokerTarget(), zookeeper, tmp_path)
    assert ("as expected", "", ()) == (result.status, result.reason, result.anomalies)


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND_BY)
def test_bug_in_the_codec_is_found(name: str, tmp_path: Path, zookeeper: Address) -> None:
    result = play(Planted(name), zookeeper, tmp_path)
    assert Verdict.INVALID is result.verdict
    found = {(each.kind, each.checker) for each in result.anomalies}
    assert FOUND_BY[name] & found, result.found


def test_every_bug_in_the_codec_has_its_finding() -> None:
    assert FOUND_BY.keys() == MUTANTS_OF_THE_CODEC.keys()

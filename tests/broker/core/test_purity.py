"""The core is a function of its events: its state is plain data, it does no IO, and its order is deterministic."""

from __future__ import annotations

import ast
import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import targets.broker.core
from targets.broker.core.broker import Broker
from targets.broker.core.events import Effect, Event, Received, Tick, ZkSession
from targets.broker.core.messages import TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import State
from targets.broker.core.wishes import Wishes, encode_wishes
from targets.broker.core.zookeeper import ELECTIONS
from tests.broker.core.asks import epoch_question, fetch, lead, produce, registered
from tests.broker.core.bench import TP, Bench, batch
from tests.broker.core.cluster import Cluster

CORE = Path(targets.broker.core.__file__).parent
ROOT = CORE.parents[2]
FORBIDDEN = {
    "asyncio",
    "datetime",
    "io",
    "kazoo",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "socket",
    "subprocess",
    "threading",
    "time",
    "uuid",
}
BUILTINS_FORBIDDEN = {"open", "print", "input", "id", "hash"}
HASH_SEEDS = ("0", "4711")


def busy(protocol: str) -> Bench:
    """Return a broker with everything under way: produces, fetches, a write to ZooKeeper, commands, timers."""
    bench = registered(protocol, (0, 2), replicas=(1, 2, 3))
    lead(bench, epoch=4, isr=(1, 2), replicas=(1, 2, 3))
    bench.request(produce(batch(2), acks=-1))
    bench.hold("/brokers/topics/t/0/leaderAndISR")
    bench.request(fetch(4, replica=3, wait_ms=500))
    bench.request(fetch(0, wait_ms=500))
    assert bench.held
    assert bench.broker.state.produces
    assert len(bench.broker.state.fetches) == 2
    return bench


def effects_of(state: State, bench: Bench, events: list[tuple[int, Event]]) -> list[str]:
    broker = Broker(state.config, bench)
    broker.state = state
    return [repr(effect) for now_ns, event in events for effect in broker.step(now_ns, event)]


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_state_can_be_copied_at_any_moment_and_the_copy_does_the_same(how: str, protocol: str) -> None:
    bench = busy(protocol)
    state = bench.broker.state
    twin = copy.deepcopy(state) if how == "deepcopy" else pickle.loads(pickle.dumps(state))
    before = repr(twin)
    (caller,) = [waiting.caller for waiting in state.produces.requests.values()]
    events: list[tuple[int, Event]] = [
        (1, Received(caller=caller, request=fetch(4, replica=2, epoch=4))),
        (1, Received(caller=caller, request=epoch_question(0, current=3))),
        (2, Received(caller=caller, request=produce(acks=-1, timeout_ms=10))),
        (600_000_000, Tick()),
        (20_000_000_000, Tick()),
        (20_000_000_001, ZkSession(session=0)),
    ]
    expected = effects_of(state, bench, events)
    assert before == repr(twin)  # the copy shares nothing with the original
    assert expected == effects_of(twin, bench, events)
    assert repr(state) == repr(twin)
    assert len(expected) > 8


@pytest.mark.parametrize("protocol", ["hw", "kip101-text", "kip380"])
def test_every_broker_of_a_cluster_can_be_copied_between_any_two_events(protocol: str) -> None:
    """Every state of every broker, from election to failover, is plain data."""
    seen = 0

    class Copying(Bench):
        def step(self, event: Event) -> list[Effect]:
            nonlocal seen
            seen += 1
            assert repr(pickle.loads(pickle.dumps(self.broker.state))) == repr(self.broker.state)
            return super().step(event)

    cluster = Cluster(protocol, brokers=(), bench=Copying)
    play(cluster)
    assert seen > 100


def play(cluster: Cluster) -> list[str]:
    """Run three brokers through elections, crashes and a bounce; return each broker's effects in order."""
    told: list[str] = []
    for broker in (3, 1, 2):
        cluster.start(broker)
    cluster.create("zeta", replicas=(2, 3, 1))
    for topic in ("t", "alpha", "mu"):
        cluster.create(topic, replicas=(1, 2, 3))
    cluster.produce(1, 3)
    gone = [cluster.benches[1], cluster.benches[2]]
    cluster.crash(1)
    cluster.produce(2, 2)
    cluster.start(1)
    cluster.pass_ms(12_000, step_ms=1_000)
    cluster.delete("alpha")
    cluster.zk.put(ELECTIONS, encode_wishes(Wishes(elections={TP: 3, TopicPartition("mu", 0): 1})))
    cluster.settle()
    cluster.produce(cluster.state().leader, 2)
    bounced = cluster.stop(2)
    cluster.start(2)
    cluster.expire(bounced)
    cluster.pass_ms(2_000, step_ms=1_000)
    cluster.crash(3)
    for bench in (*gone, *cluster.benches.values()):
        told += [repr(effect) for effect in bench.effects]
    return told


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_same_events_give_the_same_effects(protocol: str) -> None:
    runs = [play(Cluster(protocol, brokers=())) for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(runs[0]) > 250


def test_effects_do_not_depend_on_the_hash_seed() -> None:
    """Sets of strings iterate in the order of their hashes, which must not affect the effects."""
    script = (
        "import sys\n"
        "from tests.broker.core.cluster import Cluster\n"
        "from tests.broker.core.test_purity import play\n"
        "from targets.broker.core.rules import PROTOCOLS\n"
        "for protocol in PROTOCOLS:\n"
        "    print(*play(Cluster(protocol, brokers=())), sep=chr(10))\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        for seed in HASH_SEEDS
    ]
    assert outputs[0] == [line for protocol in PROTOCOLS for line in play(Cluster(protocol, brokers=()))]
    for other in outputs[1:]:
        assert outputs[0] == other


@pytest.mark.parametrize("path", sorted(CORE.glob("*.py")), ids=lambda path: path.stem)
def test_core_imports_nothing_that_does_io_and_calls_no_such_builtin(path: Path) -> None:
    assert [] == impurities(path.read_text(encoding="utf-8"))


def impurities(source: str) -> list[str]:
    """Return the forbidden modules imported and forbidden builtins called."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [name.name for name in names if name.name.split(".")[0] in FORBIDDEN]
            case ast.ImportFrom(module=str(module)):
                found += [module] if module.split(".")[0] in FORBIDDEN else []
            case ast.Call(func=ast.Name(id=name)) if name in BUILTINS_FORBIDDEN:
                found.append(name)
    return found


def test_impurities_are_found_where_they_are() -> None:
    source = "import os.path\nfrom time import sleep\nfrom json import dumps\nprint(open('x'))\n"
    assert sorted(impurities(source)) == ["open", "os.path", "print", "time"]

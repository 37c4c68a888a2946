"""Whether a machine can have the Java clients: what is missing is named, with what to do, and a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.java import Java
from harness.model import UsageError
from harness.search.random_runs import RandomRuns
from harness.workload.plan import Clients, ConsumerPlan, Library, Place, ProducerPlan
from harness.workload.text import line_of
from targets.kafka.releases import release_of
from targets.kafka_family.clients import java_home, java_work
from targets.kafka_family.clients.libraries import impossible, lacking
from targets.kafka_family.clients.stack import Stack
from workloads import WORKLOADS

PLACES = (Place("log", 0), Place("orders", 0))
WHY = "no jars are here; `fencepost kafka fetch 3.9.1` brings them"
SEED = 7


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a JAVA_HOME whose compiler is a script; the machine has the jars, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    home = tmp_path / "jdk"
    java = Java(home=home, executable=home / "bin" / "java", version=17, source="test")
    monkeypatch.setattr(java_home, "find_java", lambda: java)
    monkeypatch.setattr(java_home, "class_path_of", lambda *_: (Path("a.jar"), Path("b.jar")))
    monkeypatch.setattr(java_home.shutil, "which", lambda _: None)
    (home / "bin").mkdir(parents=True)
    compiler(home, 'while [ "$1" != -d ]; do shift; done; echo of >"$2/Client.class"')
    return home


def compiler(home: Path, script: str) -> None:
    path = home / "bin" / "javac"
    path.write_text(f"#!/bin/sh\necho ran >>{home}/ran\n{script}\n")
    path.chmod(0o755)


def found() -> java_home.JavaHome | str:
    """Look again, as another process would."""
    return java_home._found.__wrapped__()


def test_client_is_compiled_once_and_its_classes_come_before_the_jars(machine: Path) -> None:
    first = found()
    assert isinstance(first, java_home.JavaHome)
    classes, *jars = first.class_path
    assert [Path("a.jar"), Path("b.jar")] == jars
    assert (classes / "Client.class").exists()
    assert [classes] == [*classes.parent.iterdir()]
    assert first == found()
    assert "ran\n" == (machine / "ran").read_text()


def test_compiler_that_somebody_else_outran_does_no_harm(machine: Path) -> None:
    home = found()
    assert isinstance(home, java_home.JavaHome)
    kept = home.class_path[0] / "Client.class"
    kept.rename(kept.with_name("other"))
    compiler(machine, f'while [ "$1" != -d ]; do shift; done; echo late >"$2/Client.class"; echo first >{kept}')
    assert home == found()
    assert "first\n" == kept.read_text()


def test_machine_without_a_compiler_says_so(machine: Path) -> None:
    (machine / "bin" / "javac").unlink()
    assert f"javac: not in {machine}/bin, and not on PATH; expected a Java compiler; install a JDK" in str(found())


def test_compiler_that_fails_is_quoted_and_leaves_nothing(machine: Path, tmp_path: Path) -> None:
    compiler(machine, "echo release 17 not supported >&2; exit 2")
    assert "javac: exit code 2, it said 'release 17 not supported'; expected" in str(found())
    assert [] == [*(tmp_path / "cache" / "fencepost" / "java").iterdir()]


def test_machine_without_the_jars_says_what_brings_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    why = "Apache Kafka's Java clients: 2 of 2 jars are not in .*; `fencepost kafka fetch 3.9.1` brings them"
    monkeypatch.setattr(java_home, "_found", java_home._found.__wrapped__)
    with pytest.raises(UsageError, match=why):
        java_home.java_home()
    assert java_home.lacks()


def test_jars_are_those_of_the_release_that_is_named() -> None:
    ours, all_ = (path.read_text().splitlines() for path in (java_home.LOCK, release_of(java_home.RELEASE).lock))
    assert {*ours} < {*all_}
    assert any(f"kafka-clients-{java_home.RELEASE}.jar" in line for line in ours)


# --- a run ------------------------------------------------------------------------------------------------------
def lack(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """Let the machine lack the Java clients, "": let it have them."""
    stack = Stack(
        sender=java_work.JavaSender,
        reader=java_work.JavaReader,
        codecs=java_work.STACK.codecs,
        lacks=lambda: why,
        has_processes=True,
    )
    monkeypatch.setattr(java_work, "STACK", stack)


def runs(**options: object) -> RandomRuns:
    return RandomRuns(target="broker", variant="kip380", host="local", **options)  # type: ignore[arg-type]


def test_workload_goes_without_them_and_all_else_is_as_it_is_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    lack(monkeypatch, "")
    assert {} == runs(workload="mixed").left_out(SEED)
    whole = runs(workload="mixed").spec(SEED).scenario
    lack(monkeypatch, WHY)
    assert {Library.JAVA: WHY} == runs(workload="mixed").left_out(SEED)
    less = runs(workload="mixed").spec(SEED).scenario
    assert 5 == len(whole.clients.producers)
    assert whole.clients.producers[:4] == less.clients.producers
    assert whole.clients.consumers[:4] == less.clients.consumers
    assert [step.text for step in whole.steps] == [step.text for step in less.steps]


def test_workload_without_them_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lack(monkeypatch, WHY)
    assert {} == runs(workload="append").left_out(SEED)
    assert {} == runs().left_out(SEED)
    assert Library.JAVA not in WORKLOADS["crash"].clients(PLACES, seed=SEED).libraries


def test_schedule_that_names_them_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack(monkeypatch, WHY)
    plan = ConsumerPlan(name="c1", places=PLACES[:1], client=Library.JAVA)
    path = tmp_path / "schedule.txt"
    path.write_text(
        "title    One consumer\nsource   this test\nnodes    B A replicas, C controller\nrecords  m1 1\n"
        f"consumer {line_of(plan)}\nproduce m1 acks=all\n\nexpect kip380: none\n"
    )
    with pytest.raises(UsageError, match="host local: client java: no jars are here; `fencepost kafka fetch"):
        runs(schedule=path).spec(SEED)
    assert {Library.JAVA: WHY} == lacking(Clients(consumers=(plan,)))


def test_java_client_is_not_killed_and_started_again() -> None:
    killed = ProducerPlan(name="p1", places=PLACES, client=Library.JAVA, kill_after=(1, 2))
    (why,) = impossible(Clients(producers=(killed,)), Library.RAW)
    assert "client java: p1 kill_after=…; expected none" in why

"""The runner on a fake cluster: what each step does, and what follows from a wrong or failed one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness import limits
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import DOWN, Band, Effect
from harness.history.file import History, read_history
from harness.model import Op, OpType, PreconditionError, Source, UsageError
from harness.scenario.file import Draw, parse
from harness.scenario.runner import Play
from tests.scenario.fakes import FakeClient, FakeCluster

HEAD = """
title T
source KIP-101
nodes B A replicas, C controller
records m1 1..4, m2 1..3
# story
"""


def bites(cluster: Cluster, name: str) -> str:
    return f"{name} is down"


def misses(_cluster: Cluster, name: str) -> str:
    raise PreconditionError(f"{name} did not notice")


def revives(cluster: Cluster, name: str) -> str:
    cluster.given_up.starts(name)
    cluster.gone.discard(name)  # type: ignore[attr-defined]
    return f"{name} is back"


def forgets(cluster: Cluster, name: str) -> str:
    cluster.sessions[name] = 0  # type: ignore[attr-defined]
    return f"{name}'s session is over"


def fault(name: str, inject: Any, **more: Any) -> Fault:
    return Fault(
        **{"name": name, "doc": "", "inject": inject, "heal": None, "effect": Effect.NONE, **more}, band=Band.MARK
    )


FAULTS = {
    "kill": fault("kill", bites, effect=Effect.DOWN, heal=revives),
    "miss": fault("miss", misses),
    "restart": fault("restart", revives, heals=DOWN),
    "expire": fault("expire", forgets, effect=Effect.SESSION_ENDED),
}


def play(history: History, *steps: str, **more: Fault) -> tuple[Play, FakeCluster, list[Op]]:
    """Play these steps; return the play, its cluster and its ops. `more` adds faults or replaces some."""
    scenario = parse("s", HEAD + "\n".join(steps) + "\nexpect hw: none\n", "s.txt", {**FAULTS, **more})
    cluster = FakeCluster(history)
    one = Play(
        scenario=scenario,
        draw=Draw(seed=1, ids=cluster.ids, counts={"m1": 2, "m2": 3}),
        cluster=cluster,
        client=FakeClient(),
        faults={**FAULTS, **more},
    )
    one.run()
    return one, cluster, read_history(history.path)


def failed(ops: list[Op]) -> list[str]:
    return [str(op.value.get("text", op.f)) for op in ops if op.type == "fail" and op.source == "runner"]


def test_controller_starts_first_then_the_replicas_then_the_topic(history: History) -> None:
    one, cluster, _ = play(history)
    assert ("start", "C") == cluster.calls[0]
    assert {("start", "A"), ("start", "B")} == set(cluster.calls[1:3])
    assert ("topic", (2, 1)) == one.client.sent[0]  # type: ignore[attr-defined]


def test_steps_are_recorded_with_their_line_and_the_story_above_them(history: History) -> None:
    _, _, ops = play(history, "produce m1 acks=all")
    steps = [(op.type, op.value["text"], op.value["narrative"]) for op in ops if op.f == "step"]
    assert [("invoke", "produce m1 acks=all", "story"), ("ok", "produce m1 acks=all", "story")] == steps[2:]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("acks=all", {"acks": -1}),
        ("acks=1 singly", {"acks": 1, "singly": True}),
        ("acks=0 codec=gzip", {"acks": 0, "codec": "gzip"}),
        ("acks=1 via A for=1500ms", {"acks": 1, "via": "127.0.0.1:1", "timeout_s": 1.5}),
    ],
)
def test_produce_sends_as_many_records_as_were_drawn(history: History, text: str, options: dict[str, Any]) -> None:
    one, _, _ = play(history, f"produce m2 {text}")
    assert ("m2", 3, options) == one.client.sent[1]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("number", "version"), [(1, "0.10.2"), (2, "0.11.0")])
def test_format_is_asked_for_by_the_name_of_a_release(history: History, number: int, version: str) -> None:
    one, cluster, _ = play(history, f"format {number}")
    assert [("alter", cluster.topic, "message.format.version", version)] == [
        each
        for each in one.client.sent
        if each[0] == "alter"  # type: ignore[attr-defined]
    ]


def test_hold_names_link_direction_and_offset_also_of_records_to_come(history: History) -> None:
    _, cluster, _ = play(
        history,
        "produce m1 acks=all",
        "hold answers fetch A -> B from end(m2)",
        "hold requests question A -> B",
        "produce m2 acks=all",
    )
    assert [
        ("hold", "fetch", "A", "B", "answer", 2 + 3),
        ("hold", "epoch-question", "A", "B", "request", None),
    ] == [call for call in cluster.calls if call[0] == "hold"]


@pytest.mark.parametrize(
    "condition",
    [
        "leader = B",
        "elected = B",
        "isr = A B",
        "controller = C",
        "checkpoint A = end(m1)",
        "checkpoint A >= 1",
        "log B = end(m1)",
        "settled A",
        "unseen A",
        "registered A",
    ],
)
def test_condition_that_is_met_lets_the_play_go_on(history: History, condition: str) -> None:
    _, _, ops = play(history, "produce m1 acks=all", f"require {condition}", f"await {condition}")
    assert [] == failed(ops)


@pytest.mark.parametrize(
    "condition",
    [
        "leader = A",
        "elected = none",
        "isr = A",
        "controller = A",
        "checkpoint A = 7",
        "checkpoint A >= 3",
        "log B = start(m1)",
        "one-batch m1",
        "gone A",
    ],
)
def test_requirement_that_is_not_met_stops_the_play_which_heals_and_reads_all_the_same(
    history: History, condition: str
) -> None:
    one, cluster, ops = play(history, "produce m1 acks=all", f"require {condition}", "produce m2 acks=all")
    assert f"require {condition}" in failed(ops)
    assert ["m1"] == [sent[0] for sent in one.client.sent if sent[0] in ("m1", "m2")]  # type: ignore[attr-defined]
    assert ("heal",) in cluster.calls
    assert ("read",) in one.client.sent  # type: ignore[attr-defined]
    assert "done" == ops[-1].f


def test_requirement_that_is_not_met_says_what_was_seen_instead(history: History) -> None:
    _, _, ops = play(history, "require leader = A")
    error = next(op.value["error"] for op in ops if op.type == "fail")
    assert "leader = A; saw partition" in error
    assert "(log end, checkpoint)" in error


def test_fault_is_recorded_with_what_its_probe_saw(history: History) -> None:
    _, _, ops = play(history, "kill A")
    assert [("invoke", None), ("ok", "A is down")] == [
        (op.type, op.value.get("probe")) for op in ops if op.f == "kill"
    ]


def test_fault_that_did_not_bite_fails_its_step(history: History) -> None:
    _, _, ops = play(history, "miss A", "kill B")
    assert ["miss A"] == failed(ops)
    assert ["A did not notice"] == [op.value["error"] for op in ops if (op.f, op.type) == ("miss", "fail")]
    assert [] == [op for op in ops if op.f == "kill"]


def test_healing_starts_again_what_is_down(history: History) -> None:
    _, cluster, ops = play(history, "kill A")
    assert set() == cluster.down
    assert ["expire", "expire", "restart", "restart"] == [op.f for op in ops if op.source == "nemesis"][-4:]
    assert ["ok"] == [op.type for op in ops if op.f == "healed"]


def test_healing_ends_no_session_of_a_node_that_has_none(history: History) -> None:
    _, _, ops = play(history, "kill A", "expire A")
    assert ["restart", "restart"] == [op.f for op in ops if op.source == "nemesis"][-2:]
    assert 2 == len([op for op in ops if op.f == "expire"])


def test_run_is_read_once_a_node_that_zookeeper_names_anew_has_said_that_it_registered(history: History) -> None:
    """The end came 31 ms after ZooKeeper named C, and before its own report: the history contradicted itself."""
    waits: list[tuple[bool, bool]] = []

    def comes_back(cluster: Cluster, name: str) -> str:
        def tell(source: Source, process: str, f: str, value: dict[str, Any]) -> None:
            cluster.history.record_line(source, process, OpType.INFO, f, value)
            cluster.listen(read_history(cluster.history.path)[-1])

        def registers() -> None:
            tell(Source.BROKER, name, "member", {"taken_over": False, "incarnation": 7})

        def until(condition: Callable[[], bool], seconds: float) -> bool:
            if seconds == limits.TOLD_S_MAX:
                before = condition()
                registers()
                waits.append((before, condition()))
            return condition()

        registers()
        for nodes in (["A", "B", "C"], ["A", "B"], ["A", "B", "C"]):
            tell(Source.METADATA, "metadata", "members", {"nodes": nodes})
        for other in ("A", "B"):
            tell(Source.BROKER, other, "member", {"taken_over": False, "incarnation": 5})
        cluster.time = SimpleNamespace(until=until)  # type: ignore[assignment]
        return "it is named anew"

    play(history, "back C", back=fault("back", comes_back))
    assert [(False, True)] == waits


def test_node_that_ended_by_itself_is_missed(history: History) -> None:
    def ends(cluster: Cluster, name: str) -> str:
        cluster.gone.add(name)  # type: ignore[attr-defined]
        return "nobody looked"

    _, cluster, ops = play(history, "crash A", crash=fault("crash", ends))
    assert ["A ended by itself; it said: A says goodbye"] == [op.value["error"] for op in ops if op.f == "exited"]
    assert set() == cluster.down


def test_node_that_ends_by_itself_while_all_is_healed_is_missed_too(history: History) -> None:
    def ends_again(cluster: Cluster, name: str) -> str:
        revives(cluster, name)
        cluster.gone.add(name)  # type: ignore[attr-defined]
        return "for a moment"

    kill = fault("kill", bites, effect=Effect.DOWN, heal=ends_again)
    _, cluster, ops = play(history, "kill A", kill=kill, restart=fault("restart", ends_again, heals=DOWN))
    assert [("exited", "A")] == [(op.f, op.value["node"]) for op in ops if op.f == "exited"]
    assert {"A"} == cluster.down


def test_node_that_says_it_ends_itself_is_killed_where_it_hangs_in_its_exit(history: History) -> None:
    killed: list[str] = []

    def hangs(cluster: Cluster, name: str) -> str:
        cluster.host.kill = killed.append  # type: ignore[method-assign, assignment]
        value = {"topic": "log", "partition": 0, "what": "exiting", "line": "Exiting"}
        cluster.history.record_line(Source.BROKER, name, OpType.INFO, "printed", value)
        cluster.listen(read_history(cluster.history.path)[-1])
        return "it said so"

    _, _, ops = play(history, "hang A", hang=fault("hang", hangs))
    assert (["A"], ["A"]) == (killed, [op.value["node"] for op in ops if op.f == "exited"])


def test_replica_without_a_log_is_a_failed_snapshot(history: History) -> None:
    _, _, ops = play(history)
    assert [("B", "fail"), ("A", "fail")] == [(op.process, op.type) for op in ops if op.f == "snapshot"]


def test_hold_that_is_released_twice_is_a_mistake_of_the_scenario(history: History) -> None:
    with pytest.raises(UsageError, match="scenario s: held fetch A -> B: no such hold"):
        play(history, "hold requests fetch A -> B", "release all", "release fetch A -> B")


def test_pass_lets_time_pass_in_a_scenario_too(history: History) -> None:
    _, _, ops = play(history, "pass 1ms")
    assert [] == failed(ops)


def test_node_that_ends_again_when_it_is_started_is_recorded_again_and_the_others_are_healed(
    history: History,
) -> None:
    """Source: KAFKA-3924: a broker up to 2.0 exits every time it finds its leader's log shorter than its own."""

    def starts_unless_a(cluster: Cluster, name: str) -> str:
        if name == "A":
            raise PreconditionError("start A: the process ended by itself")
        return revives(cluster, name)

    def ends(cluster: Cluster, name: str) -> str:
        cluster.gone.add(name)  # type: ignore[attr-defined]
        return "gone"

    again = fault("restart", starts_unless_a, heals=DOWN)
    kill = fault("kill", bites, effect=Effect.DOWN, heal=starts_unless_a)
    one, cluster, ops = play(history, "crash A", "kill C", crash=fault("crash", ends), kill=kill, restart=again)
    assert ["A", "A"] == [op.value["node"] for op in ops if op.f == "exited"]
    assert [["C"]] == [op.value["nodes"] for op in ops if (op.f, op.type) == ("restart", "ok")]
    assert {"A"} == cluster.down
    (healed,) = [op for op in ops if op.f == "healed"]
    assert ("fail", "start A: the process ended by itself") == (healed.type, healed.value["missing"])
    assert "read" in [sent[0] for sent in one.client.sent]  # type: ignore[attr-defined]


def test_faults_are_healed_by_effect_and_each_is_proven(history: History) -> None:
    def heals(what: str) -> Any:
        return lambda _, name: f"{what} {name}"

    def lasting(name: str, effect: Effect) -> Fault:
        return fault(name, heals(name), effect=effect, heal=heals(f"heal-{name}"))

    _, cluster, ops = play(
        history,
        "kill A",
        "disk B",
        "clock A",
        "clock B",
        clock=lasting("clock", Effect.CLOCK_WRONG),
        disk=lasting("disk", Effect.DISK_GONE),
    )
    done = [(op.f, op.value["nodes"][0]) for op in ops if op.source == "nemesis" and op.type == "ok"][4:]
    assert [
        ("heal-clock", "B"),
        ("heal-clock", "A"),
        ("heal-disk", "B"),
        ("expire", "A"),
        ("restart", "A"),
    ] == done
    assert [] == list(cluster.in_force)


def test_client_reads_nothing_under_a_fault_that_could_not_be_healed(history: History) -> None:
    clock = fault("clock", bites, effect=Effect.CLOCK_WRONG, heal=misses)
    one, _, ops = play(history, "clock A", clock=clock)
    assert "read" not in [sent[0] for sent in one.client.sent]  # type: ignore[attr-defined]
    assert ["clock A"] == next(op for op in ops if op.f == "healed").value["unhealed"]
    assert {"B", "A"} == {op.process for op in ops if op.f == "snapshot"}

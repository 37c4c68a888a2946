"""A random schedule continues after failed steps, and ends with a working cluster or records why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest

from harness.cluster.cluster import Cluster
from harness.cluster.partition import Partition
from harness.events import Produce
from harness.history.memory import MemoryHistory
from harness.model import Op, OpType, PreconditionError, Source, UsageError
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.random_schedule.runner import RandomPlay, Waiting, with_slack
from harness.random_schedule.timing import REAL, VIRTUAL, Timing
from harness.run.spec import RunSpec
from harness.scenario.file import Scenario, draw, parse
from harness.scenario.runner import Play
from harness.scenario.variant import Variant
from targets.broker.core.events import Effect, Event, Received
from targets.broker.core.messages import ProduceRequest
from targets.broker_target.target import TARGET, settings_of
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.environment import cluster_of
from targets.simulator.broker.world import World
from tests.faults import NEMESES

HEAD = """title T
source chance
nodes A B replicas, C controller
records m1 2, m2 1, last1 1, last2 1, last3 1, last4 1
settings min_isr=1 heal_within_s=3

"""


def schedule(*steps: str, head: str = HEAD) -> Scenario:
    return parse("T", head + "\n".join(steps), "T.txt", NEMESES)


def played(
    *steps: str,
    protocol: str = "kip380",
    timing: Timing = VIRTUAL,
    before: Callable[[World], None] = lambda _: None,
    after: Callable[[Cluster], None] = lambda _: None,
    as_scenario: bool = False,
    head: str = HEAD,
) -> list[Op]:
    """Play a schedule in a world without randomness, as a random schedule or a scenario; return the history."""
    scenario = schedule(*steps, head=head)
    drawn = draw(scenario, 1)
    spec = RunSpec(
        target="broker",
        host="sim",
        variant=Variant(protocol=protocol),
        rules=TARGET.rules(protocol, ()),
        traits=TARGET.traits(protocol, ()),
        scenario=scenario,
        draw=drawn,
    )
    world = World(seed=1, protocol=protocol, ids=drawn.ids, settings=settings_of(scenario.settings))
    history = MemoryHistory(Path("T"), lambda: world.clock.now_ns)
    cluster = cluster_of(world, spec, history, TARGET)
    before(world)
    make = Play if as_scenario else partial(RandomPlay, timing=timing)
    make(scenario=scenario, draw=drawn, cluster=cluster, client=SimClient(world), faults=NEMESES).run()
    after(cluster)
    return history.ops


def steps_of(ops: list[Op]) -> list[tuple[OpType, str, str]]:
    """Return the outcome of each step: its type, its text, and why it was skipped or had no effect."""
    told = [op for op in ops if (op.source, op.f) == (Source.RUNNER, "step") and op.type is not OpType.INVOKE]
    return [
        (op.type, str(op.value["text"]), str(op.value.get("skipped", op.value.get("error", "")))) for op in told
    ]


def healed(ops: list[Op]) -> Op:
    return next(op for op in ops if op.f == "healed")


def test_step_without_sense_is_left_out_and_the_schedule_goes_on() -> None:
    ops = played("restart A", "produce m1 acks=all meanwhile", "pass 20ms")
    assert (OpType.INFO, "restart A", "A is not down") in steps_of(ops)
    assert (OpType.OK, "pass 20ms", "") in steps_of(ops)
    assert not [op for op in ops if op.f == "restart"]
    assert OpType.OK is healed(ops).type


def test_step_that_comes_to_nothing_is_told_and_the_schedule_goes_on() -> None:
    ops = played("cut A -> B", "heal A -> B", "pass 1ms")
    (missed,) = [step for step in steps_of(ops) if step[1] == "heal A -> B"]
    assert OpType.INFO is missed[0]
    assert "no frame was lost" in missed[2]
    assert (OpType.OK, "pass 1ms", "") in steps_of(ops)
    assert OpType.OK is healed(ops).type


def test_step_of_which_nobody_can_tell_whether_it_applies_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object) -> tuple[str, ...]:
        raise PreconditionError("who is wanted: nobody answers")

    monkeypatch.setattr("targets.simulator.broker.view.SimZooKeeperView.wanted", nobody)
    ops = played("elect B", "pass 1ms", timing=Timing(alike=True, moved_s_max=1.0))
    assert (OpType.INFO, "elect B", "who is wanted: nobody answers") in steps_of(ops)
    assert (OpType.OK, "pass 1ms", "") in steps_of(ops)
    assert OpType.OK is healed(ops).type


def test_step_that_nobody_knows_is_wrong_use() -> None:
    with pytest.raises(UsageError, match=r"T.txt:7: 'dance A': 'dance'; expected one of"):
        played("dance A")


@pytest.mark.parametrize("text", ["pass", "pass soon", "pass 12"])
def test_pass_wants_a_time(text: str) -> None:
    with pytest.raises(UsageError, match=r"T.txt:7: 'pass.*expected a time such as 12ms"):
        played(text)


@pytest.mark.parametrize(("tempo", "passes_ns"), [(1.0, 250_000_000), (3.0, 750_000_000)])
def test_pass_lets_so_much_time_pass_at_its_tempo(tempo: float, passes_ns: int) -> None:
    ops = played("pass 250ms", timing=Timing(tempo=tempo))
    begun, ended = (op for op in ops if op.value.get("text") == "pass 250ms")
    assert passes_ns == ended.time_ns - begun.time_ns


def test_election_is_awaited_at_a_pace_that_has_time_for_it() -> None:
    """The next step comes after the election, whether the system elects slowly or at once."""

    def step_after(timing: Timing) -> int:
        ops = played("elect B", "pass 1ms", timing=timing)
        return next(op.index for op in ops if op.value.get("text") == "pass 1ms")

    def elected(timing: Timing) -> int:
        ops = played("elect B", "pass 1ms", timing=timing)
        return next(op.index for op in ops if op.f == "state" and op.value["leader"] == "B")

    assert step_after(VIRTUAL) < elected(VIRTUAL)
    assert elected(Timing(elected_s_max=1.0)) < step_after(Timing(elected_s_max=1.0))


def test_first_records_stand_before_anything_breaks_at_a_pace_that_waits_for_them() -> None:
    steps = ("produce m1 acks=all meanwhile", "pass 0.1ms", "kill B")

    def kill_is_late(timing: Timing) -> bool:
        ops = played(*steps, timing=timing)
        killed = next(op.index for op in ops if op.f == "kill")
        acked = [op.index for op in ops if op.f == "produce" and op.type is OpType.OK]
        return bool(acked) and max(acked[:2]) < killed

    assert (False, True) == (kill_is_late(VIRTUAL), kill_is_late(Timing(begun_s_max=5.0)))


def test_records_wait_for_their_outcome_before_it_is_told_that_they_were_sent() -> None:
    """A client may send in a thread of its own, which the next step may overtake."""
    waiting = Waiting(asked=2)
    record = Produce(topic="log", partition=0, name="m1", acks=-1, codec="none", value="m1.0")
    told = Op.of(record, index=0, time_ns=0, process="c", type=OpType.INVOKE)
    assert not waiting.over()
    for type_ in (OpType.INVOKE, OpType.OK, OpType.INVOKE, OpType.INFO):
        assert not waiting.over()
        waiting.listen(replace(told, type=type_))
    assert waiting.over()


def test_pass_ends_with_the_outcome_of_records_that_wait_for_it() -> None:
    steps = ("pass 1ms", "produce m1 acks=all meanwhile", "pass 900ms")
    ops = played(*steps, timing=Timing(settled_s_max=0.5))
    begun, ended = (op for op in ops if op.value.get("text") == "pass 900ms")
    assert ended.time_ns - begun.time_ns < 500_000_000
    assert {OpType.OK} == {op.type for op in ops[begun.index : ended.index] if op.f == "produce"}


def test_pass_that_waited_in_vain_is_followed_by_short_ones_until_a_fault_or_a_link_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a majority down each pass would be as long as an election."""
    monkeypatch.setattr(Waiting, "over", lambda _: False)
    steps = (*["pass 20ms"] * 3, "kill B", "pass 20ms", "pass 20ms", "hold requests fetch B -> *", "pass 20ms")

    def are_long(timing: Timing) -> list[bool]:
        ops = [op for op in played(*steps, timing=timing) if op.value.get("text") == "pass 20ms"]
        return [ended.time_ns - begun.time_ns > 200_000_000 for begun, ended in pairs(ops)]

    assert [True, False, False, True, False, True] == are_long(Timing(settled_s_max=0.3).for_elections(1.0))
    assert [True] * 6 == are_long(Timing(settled_s_max=0.3))


def test_pass_without_epochs_lasts_until_followers_know_the_last_high_watermark() -> None:
    steps = ("pass 1ms", "produce m1 acks=all meanwhile", "pass 900ms")
    head = HEAD.replace("min_isr=1", "min_isr=1 message_format=without_epochs")
    ops = played(*steps, timing=Timing(settled_s_max=0.5), head=head)
    begun, ended = (op for op in ops if op.value.get("text") == "pass 900ms")
    assert ended.time_ns - begun.time_ns >= 900_000_000


def test_end_gives_up_at_once_when_a_node_ends_by_itself_meanwhile() -> None:
    """Source: KAFKA-3924: a broker up to 2.0 exits when its log is longer than its leader's."""

    def doomed(world: World) -> None:
        node = world.nodes["B"]
        world.on_call("doom", lambda: node.process and node.end(node.process, "a crash"))
        world.clock.after(60_000_000, ("call", "doom"))

    ops = played("hold requests fetch B -> A", "produce m1 acks=all meanwhile", "pass 40ms", before=doomed)
    last = healed(ops)
    assert OpType.FAIL is last.type
    assert "B ended by itself" in str(last.value["missing"])
    assert last.value["waited"] is False


def test_end_gives_up_at_once_when_a_replica_cannot_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: KAFKA-6361: a follower whose log ends inside a batch of its leader's repeats its request."""
    monkeypatch.setattr(Partition, "is_stuck", lambda _, name: name == "B")
    monkeypatch.setattr(RandomPlay, "_is_whole", lambda _: False)
    steps = ("produce m1 acks=all meanwhile", "pass 30ms")
    last = healed(played(*steps, timing=Timing(ends_when_stuck=True)))
    assert (OpType.FAIL, "B stuck, and all others settled") == (last.type, last.value["missing"])
    waited = healed(played(*steps))
    assert "not seen within 3 s" in str(waited.value["missing"])
    assert waited.value["waited"] is True


def test_end_goes_on_when_leadership_moves_right_after_the_cluster_was_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = cycle([True, False])
    monkeypatch.setattr(RandomPlay, "_is_whole", lambda _: next(turns))
    assert (
        OpType.OK
        is healed(played("produce m1 acks=all meanwhile", "pass 30ms", timing=Timing(ends_when_stuck=True))).type
    )


def test_end_waits_until_a_further_partition_is_whole_before_each_of_its_last_records() -> None:
    """The ISR shrinks when the first one comes, and B is away for longer than four records would take."""

    def falls_behind(world: World) -> None:
        def on_step(name: str, event: Event, _: Sequence[Effect]) -> None:
            request = event.request if isinstance(event, Received) else None
            if isinstance(request, ProduceRequest) and request.partitions[0].tp.topic == "orders":
                world.watchers.remove(on_step)
                cut = world.links.cut("B", name, close=True)
                world.on_call("return", lambda: world.links.heal(cut))
                world.clock.after(2_000_000_000, ("call", "return"))

        world.watchers.append(on_step)

    head = HEAD.replace("min_isr=1", "min_isr=2 replica_lag_ms_max=60").rstrip() + "\npartition orders-0 A B\n\n"
    ops = played("produce m1 acks=all meanwhile", "pass 20ms", before=falls_behind, head=head)
    last = [op for op in ops if op.f == "produce" and op.value["topic"] == "orders"]
    outcomes = [(op.value["name"], op.type) for op in last if op.type is not OpType.INVOKE]
    assert [("last1", OpType.INFO), ("last2", OpType.OK)] == outcomes
    assert OpType.OK is healed(ops).type


def test_end_restores_whoever_is_away_and_has_a_last_record_acknowledged() -> None:
    ops = played("produce m1 acks=all meanwhile", "pass 20ms", "kill A", "pass 20ms")
    assert OpType.OK is healed(ops).type
    acked = [op.value["name"] for op in ops if op.f == "produce" and op.type is OpType.OK]
    assert {"m1", FINAL_RECORDS[0]} == set(acked)
    assert ["A", "B"] == sorted([op for op in ops if op.f == "state"][-1].value["isr"])


def test_end_frees_the_office_of_a_controller_whose_old_session_holds_it() -> None:
    ops = played("kill C", "restart C", "kill A", "restart A", "pass 20ms")
    assert OpType.OK is healed(ops).type


def holds_office(cluster: Cluster) -> bool:
    """Return whether the controller took its office in the session in which it is registered."""
    office = cluster.metadata.office()
    return office is not None and office.member == cluster.metadata.incarnation(str(office.node))


@pytest.mark.parametrize("as_scenario", [True, False])
def test_end_frees_the_office_that_a_dead_session_of_its_controller_holds(as_scenario: bool) -> None:
    """On a real ZooKeeper that session lasts another 90 s, in which the controller decides nothing."""
    seen: list[bool] = []

    def note(cluster: Cluster) -> None:
        cluster.await_(cluster.is_governed, lambda: "a controller")
        seen.append(holds_office(cluster))

    ops = played("kill C", "restart C", after=note, as_scenario=as_scenario)
    assert (OpType.OK, [True]) == (healed(ops).type, seen)


def test_end_frees_the_office_of_a_controller_that_no_fault_took_down() -> None:
    """The controller exited by itself and left its session behind, as a crashed process does."""

    def crashes(world: World) -> None:
        world.on_call("doom", world.nodes["C"].kill)
        world.clock.after(20_000_000, ("call", "doom"))

    seen: list[bool] = []

    def note(cluster: Cluster) -> None:
        seen.append(holds_office(cluster))

    ops = played("pass 30ms", "restart C", "pass 1ms", before=crashes, after=note)
    assert ["C"] == [op.value["node"] for op in ops if op.f == "exited"]
    assert (OpType.OK, [True]) == (healed(ops).type, seen)


def test_end_says_what_lacks_when_the_leader_waits_for_an_epoch_that_never_comes() -> None:
    """Source: KAFKA-1120: under kip320 the controller does not see the bounce."""
    ops = played("produce m1 acks=all meanwhile", "pass 20ms", "kill A", "restart A", protocol="kip320")
    assert OpType.FAIL is healed(ops).type
    assert "A to lead; it waits for an epoch newer than 0" in str(healed(ops).value["missing"])


def test_node_that_ends_by_itself_is_told_of_and_comes_back() -> None:
    def doomed(world: World) -> None:
        node = world.nodes["B"]
        world.on_call("doom", lambda: node.process and node.end(node.process, "a crash"))
        world.clock.after(30_000_000, ("call", "doom"))

    ops = played("pass 50ms", "pass 1ms", before=doomed)
    (exited,) = [op for op in ops if op.f == "exited"]
    assert ("B", OpType.FAIL) == (exited.value["node"], exited.type)
    assert OpType.OK is healed(ops).type


def test_slack_gives_the_cluster_more_time_for_what_has_limits() -> None:
    slow = with_slack(schedule("pass 1ms"), 8.0)
    assert (24.0, None) == (slow.settings.heal_within_s, slow.settings.replica_lag_ms_max)
    lagging = parse("T", HEAD.replace("min_isr=1", "replica_lag_ms_max=60") + "pass 1ms", "T.txt", NEMESES)
    assert 480 == with_slack(lagging, 8.0).settings.replica_lag_ms_max
    churned = parse("T", HEAD + "churner n1 temp A B within_ms=30\n\npass 1ms", "T.txt", NEMESES)
    assert [240] == [churner.within_ms for churner in with_slack(churned, 8.0).clients.churners]


def pairs(ops: Sequence[Op]) -> Iterator[tuple[Op, Op]]:
    """Yield the invocation and the outcome of each step."""
    yield from zip(ops[::2], ops[1::2], strict=True)


@pytest.mark.parametrize(
    ("election_s", "expected"), [(0.0, (0.7, True)), (1.0, (0.7, True)), (20.0, (10.0, False))]
)
def test_pass_is_extended_by_as_long_as_a_system_elects(election_s: float, expected: tuple[float, bool]) -> None:
    found = REAL.for_elections(election_s)
    assert expected == (found.settled_s_max, found.hopes)
    assert VIRTUAL == VIRTUAL.for_elections(election_s)

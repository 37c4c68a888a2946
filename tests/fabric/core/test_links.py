"""Under any sequence of rules the core keeps order, stops held frames, loses cut ones, and doubles once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.fabric.core.lanes import ANSWERS, REQUESTS, Connection
from harness.fabric.core.rules import Cut, Delay, Direction, Double, Hold, Pattern
from harness.fabric.limits import DOUBLED_ANSWERS_MAX
from tests.fabric.core.bench import Arrival, Bench, Letter

LINKS = (("A", "B"), ("A", "B"), ("B", "A"))
APIS = ("fetch", "command")

places = st.integers(0, len(LINKS) - 1)
apis, ends, ways = st.sampled_from(APIS), st.sampled_from("AB***"), st.sampled_from(tuple(Direction))
patterns = st.builds(
    Pattern,
    api=st.sampled_from((*APIS, "*")),
    src=ends,
    dst=ends,
    direction=ways,
    from_offset=st.none() | st.integers(0, 3),
)
requests = st.builds(
    Pattern, api=st.sampled_from((*APIS, "*")), src=ends, dst=ends, direction=st.just(Direction.REQUEST)
)
rules = st.one_of(
    st.builds(Hold, patterns),
    st.builds(Delay, pattern=patterns, seconds=st.sampled_from((0.5, 1.0, 2.0))),
    st.builds(Double, pattern=requests),
    st.builds(Cut, links=st.tuples(st.tuples(ends, ends)), close=st.booleans()),
    st.builds(
        Cut,
        links=st.tuples(st.tuples(ends, ends)),
        close=st.just(True),
        of_1000=st.just(300),
        seed=st.integers(0, 99),
    ),
)
acts = st.one_of(
    st.tuples(st.just("ask"), places, apis, st.integers(0, 3)),
    st.tuples(st.just("ask"), st.just(0), apis, st.integers(0, 3)),
    st.tuples(st.just("answer"), places),
    st.tuples(st.just("end"), places, st.integers(0, 1)),
    st.tuples(st.just("place"), rules),
    st.tuples(st.just("lift"), st.integers(0, 9), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from((0.45, 0.5, 1.0, 3.0))),
)


class Play(Bench):
    """A drawn sequence of rules and frames; each arrival is checked when it happens, each lane after every act."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = [self.connect(link) for link in LINKS]
        self.placed: list[Any] = []
        self.made: list[Any] = []
        self.unanswered: list[list[tuple[int, str]]] = [[] for _ in LINKS]
        self.closed: set[tuple[Connection, int]] = set()
        self.correlations = 0

    def act(self, act: tuple[Any, ...]) -> None:
        before = len(self.arrived)
        match act:
            case ("ask", place, api, offset) if (self.connections[place], REQUESTS) not in self.closed:
                self.correlations += 1
                self.send(self.connections[place], REQUESTS, api, offset=offset, correlation=self.correlations)
            case ("answer", place) if (self.connections[place], ANSWERS) not in self.closed:
                for correlation, api in self.unanswered[place]:
                    self.send(self.connections[place], ANSWERS, api, correlation=correlation)
                self.unanswered[place].clear()
            case ("end", place, direction) if (self.connections[place], direction) not in self.closed:
                self.closed.add((self.connections[place], direction))
                self.end(self.connections[place], direction)
            case ("place", rule):
                self.placed.append(rule)
                self.made.append(rule)
                self.obey(self.core.place(rule))
            case ("lift", index, drop) if self.placed:
                rule = self.placed.pop(index % len(self.placed))
                step = (
                    self.core.heal if not isinstance(rule, Hold) else self.core.drop if drop else self.core.release
                )
                self.obey(step(rule))
            case ("wait", seconds):
                self.wait(seconds)
        for arrival in self.arrived[before:]:
            if arrival.direction == REQUESTS:
                seen = arrival.letter.seen
                assert seen is not None
                self.unanswered[self.connections.index(arrival.connection)].append((seen.correlation, seen.api))

    def check_lanes(self) -> None:
        """Check that every waiting frame is stopped by a hold, a delay or a cut."""
        for connection in self.connections:
            cut = self.core.rules.cut_of(connection.link) is not None
            assert not (connection.over and any(lane.frames for lane in connection.lanes))
            assert connection.over or cut or not connection.torn
            for lane in connection.lanes:
                # Frames that waited when a cut was placed are lost when the lane is next judged.
                if lane.frames and not cut:
                    first = lane.frames[0]
                    assert not first.end and self.stops(first.seen, first.came_ns)

    def stops(self, seen: Any, came_ns: int) -> bool:
        """Return whether a hold or a delay stops the frame now, judged by the patterns alone."""
        held = any(hold.pattern.matches(seen) for hold in self.core.rules.holds)
        delays = [delay for delay in self.core.rules.delays if delay.pattern.matches(seen)]
        return held or (bool(delays) and came_ns + delays[0].seconds * 1e9 > self.now_ns)

    def pump(self, connection: Connection, direction: int) -> None:
        before, ended = len(self.arrived), len(self.ended)
        super().pump(connection, direction)
        cut = self.core.rules.cut_of(connection.link) is not None
        assert not cut or (before, ended) == (len(self.arrived), len(self.ended))
        for arrival in self.arrived[before:]:
            assert not self.stops(arrival.letter.seen, arrival.letter.came_ns)
            self.check_double(arrival)

    def check_double(self, arrival: Arrival) -> None:
        """Check that a frame that a doubling matches arrives twice in a row, and every other frame once."""
        doubled = any(double.pattern.matches(arrival.letter.seen) for double in self.core.rules.doubles)
        mine = [a.letter for a in self.arrived if a.letter.number == arrival.letter.number]
        assert [False, True][: 2 if doubled else 1] == [letter.copy for letter in mine]


def test_cut_of_a_share_takes_about_so_many_frames_by_its_seed_and_a_cut_of_all_takes_each() -> None:
    takes = [Cut(links=(("A", "B"),), close=True, of_1000=300, seed=seed) for seed in (1, 1, 2)]
    first, again, other = ([cut.takes_next() for _ in range(1000)] for cut in takes)
    assert first == again != other
    assert 250 < sum(first) < 350
    assert all(Cut(links=(("A", "B"),), close=True).takes_next() for _ in range(100))


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.lists(acts, min_size=8, max_size=40))
def test_rules_decide_what_arrives_and_when(script: list[tuple[Any, ...]]) -> None:
    play = Play()
    for act in script:
        play.act(act)
        play.check_lanes()
    check_order(play)
    check_answers(play)
    check_records(play)


def check_order(play: Play) -> None:
    """Check that the frames of a lane arrive in the order in which they were sent, and that a lane ends once."""
    for connection in play.connections:
        for direction in range(2):
            mine = [a for a in play.arrived if a.connection is connection and a.direction == direction]
            numbers = [arrival.letter.number for arrival in mine]
            assert sorted(numbers) == numbers
            assert play.ended.count((connection, direction)) <= 1


def check_answers(play: Play) -> None:
    """Check that no request is answered twice."""
    answers = [a for a in play.arrived if a.direction == ANSWERS]
    seen = Counter((id(a.connection), a.letter.seen.correlation) for a in answers if a.letter.seen is not None)
    assert all(count == 1 for count in seen.values())


def check_records(play: Play) -> None:
    """Check the records: every frame for a hold or a doubling, the first frame per link for a cut or a delay."""
    bites = {
        "held": sum(len(rule.held) for rule in play.made if isinstance(rule, Hold)),
        "doubled": sum(rule.frames_doubled for rule in play.made if isinstance(rule, Double)),
        "lost": sum(len(rule.bitten) for rule in play.made if isinstance(rule, Cut)),
        "delayed": sum(len(rule.bitten) for rule in play.made if isinstance(rule, Delay)),
    }
    assert bites == {f: len(play.of(f)) for f in bites}
    assert bites["doubled"] == sum(arrival.letter.copy for arrival in play.arrived)
    assert len(play.of("dropped")) <= bites["held"]
    assert len(set(play.reset)) == len(play.reset)


def held_by(bench: Bench, **about: Any) -> Hold:
    hold = Hold(Pattern(**{"api": "fetch", "src": "A", "dst": "B", "direction": Direction.REQUEST, **about}))
    bench.obey(bench.core.place(hold))
    return hold


def test_released_frames_go_on_in_their_order() -> None:
    bench = Bench()
    connection = bench.connect(("A", "B"))
    hold = held_by(bench, from_offset=2)
    for offset in range(5):
        bench.send(connection, REQUESTS, offset=offset)
    assert ([1, 2], 1) == ([a.letter.number for a in bench.arrived], len(hold.held))
    bench.obey(bench.core.release(hold))
    assert [1, 2, 3, 4, 5] == [a.letter.number for a in bench.arrived]
    assert ["hold", "held", "release"] == [f for f, _ in bench.records]


def test_delayed_frame_goes_on_when_its_time_has_come_and_not_before() -> None:
    bench = Bench()
    connection = bench.connect(("A", "B"))
    pattern = Pattern(api="fetch", src="A", dst="B", direction=Direction.REQUEST)
    bench.obey(bench.core.place(Delay(pattern=pattern, seconds=0.5)))
    bench.send(connection, REQUESTS)
    bench.wait(0.499)
    bench.pump_all()
    assert [] == bench.arrived
    bench.wait(0.001)
    assert [500_000_000] == [arrival.at_ns for arrival in bench.arrived]


def test_held_requests_are_doubled_in_their_places_when_they_are_released() -> None:
    bench = Bench()
    connection = bench.connect(("A", "B"))
    held_by(bench)
    bench.obey(bench.core.place(Double(pattern=Pattern(api="*", src="A", dst="B", direction=Direction.REQUEST))))
    for correlation in range(2):
        bench.send(connection, REQUESTS, correlation=correlation)
    bench.obey(bench.core.release(bench.core.rules.holds[0]))
    assert [(1, False), (1, True), (2, False), (2, True)] == [
        (arrival.letter.number, arrival.letter.copy) for arrival in bench.arrived
    ]


def test_cut_that_heals_resets_only_what_lost_frames_to_it_and_lies_under_no_other() -> None:
    bench = Bench()
    torn, whole = bench.connect(("A", "B")), bench.connect(("A", "B"))
    first, second = (Cut(links=(("A", "*"),), close=False) for _ in range(2))
    for cut in (first, second):
        bench.obey(bench.core.place(cut))
    bench.send(torn, REQUESTS)
    bench.obey(bench.core.heal(first))
    assert [] == bench.reset
    bench.obey(bench.core.heal(second))
    assert ([torn], [whole], 1) == (bench.reset, bench.core.on(("A", "B")), len(bench.of("lost")))


def test_rule_that_is_no_more_in_force_records_nothing_when_it_is_lifted_again() -> None:
    bench = Bench()
    hold, cut = held_by(bench), Cut(links=(("A", "B"),), close=False)
    bench.obey(bench.core.place(cut))
    for _ in range(2):
        for effects in (
            bench.core.release(hold),
            bench.core.drop(hold),
            bench.core.heal(cut),
            bench.core.heal(hold),
        ):
            bench.obey(effects)
    assert ["hold", "cut", "release", "heal"] == [f for f, _ in bench.records]


def test_reset_records_what_was_held_in_both_directions_and_nothing_else() -> None:
    bench = Bench()
    connection = bench.connect(("A", "B"))
    for direction in Direction:
        held_by(bench, direction=direction)
    for direction in (ANSWERS, REQUESTS):
        bench.send(connection, direction)
        bench.send(connection, direction, "command")
    for _ in range(2):
        bench.obey(bench.core.reset(connection, "for a test"))
    assert ["request", "answer"] == [value["direction"] for value in bench.of("dropped")]
    assert [connection] == bench.reset


def test_second_answer_is_dropped_before_any_rule_sees_it() -> None:
    bench = Bench()
    connection = bench.connect(("A", "B"))
    bench.obey(bench.core.place(Double(pattern=Pattern(api="*", src="*", dst="*", direction=Direction.REQUEST))))
    for correlation in (1, 2):
        bench.send(connection, REQUESTS, correlation=correlation)
    hold = held_by(bench, direction=Direction.ANSWER)
    # The first request has no answer, like a produce with acks=0.
    for correlation in (2, 2, 3):
        bench.send(connection, ANSWERS, correlation=correlation)
    bench.obey(bench.core.release(hold))
    answers = [a.letter.seen for a in bench.arrived if a.direction == ANSWERS]
    assert ([2, 3], 1) == ([seen.correlation for seen in answers if seen], len(hold.held))
    assert [] == connection.awaited


def test_no_more_requests_are_doubled_than_answers_can_be_awaited() -> None:
    bench = Bench()
    connection = bench.connect(("A", "B"))
    double = Double(pattern=Pattern(api="*", src="*", dst="*", direction=Direction.REQUEST))
    bench.obey(bench.core.place(double))
    for correlation in range(DOUBLED_ANSWERS_MAX):
        bench.send(connection, REQUESTS, correlation=correlation)
    assert DOUBLED_ANSWERS_MAX // 2 == double.frames_doubled


def test_frame_without_a_number_and_the_rest_of_a_large_one_go_on_once() -> None:
    bench = Bench()
    connection = bench.connect(("A", "B"))
    bench.obey(bench.core.place(Double(pattern=Pattern(api="*", src="*", dst="*", direction=Direction.REQUEST))))
    bench.send(connection, REQUESTS, correlation=-1)
    held_by(bench, api="*")
    connection.lanes[REQUESTS].frames.append(Letter(bench.now_ns, number=9))
    bench.pump(connection, REQUESTS)
    assert [1, 9] == [a.letter.number for a in bench.arrived]

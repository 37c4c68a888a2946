from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from targets.broker.core.timers import NEVER, TimerKey, Timers

KEYS = st.sampled_from([("a", 1), ("a", 2), ("b",), ("c", "x")])
MOVES = st.lists(st.tuples(KEYS, st.integers(min_value=-1, max_value=20)), max_size=400)


@given(MOVES)
def test_earliest_and_due_timers_are_those_of_a_plain_table(moves: list[tuple[TimerKey, int]]) -> None:
    """A move to -1 drops the timer; every tenth move looks which ones are due."""
    timers = Timers()
    plain: dict[TimerKey, int] = {}
    for number, (key, at) in enumerate(moves):
        if at < 0:
            assert timers.drop(key) is (plain.pop(key, None) is not None)
        else:
            timers.set(key, at)
            plain[key] = at
        assert min(plain.values(), default=NEVER) == timers.earliest()
        if number % 10 == 9:
            due = sorted((key for key in plain if plain[key] <= 10), key=lambda key: (plain[key], str(key)))
            assert due == timers.due(10)
            for spent in due:
                assert timers.drop(spent)
                del plain[spent]
        assert set(plain) == set(timers)
    assert len(plain) == len(timers)


def test_timers_that_move_again_and_again_do_not_pile_up() -> None:
    timers = Timers()
    for at in range(10_000):
        timers.set(("moved",), at)
    assert len(timers._heap) < 100
    assert 9_999 == timers.earliest()

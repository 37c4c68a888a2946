"""What a night plays follows from its plan, seed, length and known seeds alone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from harness.night.known import Known
from harness.night.plan import parse_plan, read_plan
from harness.night.schedule import SLICE_SEEDS, Role, Unit, digest_of, schedule_of
from tests.night.nights import BOTH

HOUR_S = 3600.0


def units(
    *, seed: int = 7, seconds: float = HOUR_S, known: tuple[Known, ...] = (), plan: str = ""
) -> tuple[Unit, ...]:
    read = parse_plan(plan, "test.toml") if plan else read_plan()
    return schedule_of(read, known, seed=seed, seconds=seconds, folder=Path("known"), power_tier=None)


def known(name: str, host: str = "sim", target: str = "broker", variant: str = "kip380") -> Known:
    return Known(name=name, host=host, target=target, variant=variant, alike=False, seed=3, night="n", kind="lost")


def test_same_night_has_the_same_units_and_another_seed_others() -> None:
    assert digest_of(units()) == digest_of(units())
    assert digest_of(units()) != digest_of(units(seed=8))
    assert digest_of(units()) != digest_of(units(seconds=HOUR_S + 60))


def test_no_seed_is_played_twice() -> None:
    taken = [
        range(unit.first, unit.first + (unit.seeds or int(unit.seconds))) for unit in units(seconds=8 * HOUR_S)
    ]
    assert all(one.stop <= other.start for one, other in pairwise(taken))


def test_simulator_is_given_seeds_in_small_slices_and_processes_are_given_seconds() -> None:
    played = [unit for unit in units(seconds=8 * HOUR_S) if unit.role is Role.PLAY]
    assert all(0 < unit.seeds <= SLICE_SEEDS for unit in played if unit.simulated)
    assert all(unit.seeds == 0 < unit.seconds for unit in played if not unit.simulated)
    # All of the night is given away, up to what rounding costs.
    assert abs(sum(unit.seconds for unit in played) - 8 * HOUR_S) < 60


def test_canaries_come_first_then_known_seeds_then_rounds_that_see_every_host() -> None:
    found = units(known=(known("a"), known("b", "local"), known("c")))
    assert [Role.CANARY, Role.KNOWN, Role.PLAY] == list(dict.fromkeys(unit.role for unit in found))
    played = [unit for unit in found if unit.role is Role.PLAY]
    assert {"sim", "local", "docker"} == {unit.host for unit in played[: len(played) // 2]}


def test_known_seeds_of_a_host_and_target_are_one_unit() -> None:
    found = [
        unit for unit in units(known=(known("a"), known("b", "local"), known("c"))) if unit.role is Role.KNOWN
    ]
    assert [("sim broker:kip380 known", 2), ("local broker:kip380 known", 1)] == [
        (unit.line, unit.seeds) for unit in found
    ]
    runs, seed = found[0].run(1)
    assert (Path("known/c.txt"), 3) == (runs.schedule, seed)


def test_scenarios_of_a_canary_are_places_of_one_unit() -> None:
    plan = BOTH.replace('["kip101-1"]', '["kip101-1", "kip101-2"]')
    first = units(plan=plan)[0]
    names = [(runs.schedule.stem if runs.schedule else "", seed) for runs, seed in map(first.run, range(2))]
    assert [("kip101-1", first.first), ("kip101-2", first.first)] == names


def test_play_that_gets_twice_the_share_gets_twice_the_seeds() -> None:
    plan = 'seeds_a_minute = 60\n[[play]]\nhosts = ["sim"]\nprotocols = ["kip380"]\nshare = 2\n'
    plan += '[[play]]\nhosts = ["sim"]\nprotocols = ["kip320"]\n'
    seeds = {unit.target: unit.seeds for unit in units(plan=plan, seconds=90.0)}
    assert {"broker:kip380": 60, "broker:kip320": 30} == seeds


def test_play_of_chaos_has_long_runs_and_a_line_of_its_own() -> None:
    plan = '[[play]]\nhosts = ["local"]\nprotocols = ["kip380"]\nworkloads = ["append"]\n'
    for extra, line, seconds in (("", " append", None), ("chaos = 90\n", " 90 s of chaos", 90.0)):
        found = units(plan=plan + extra)
        assert {seconds} == {unit.runs[0].seconds for unit in found}
        assert all(unit.line.endswith(line) for unit in found)

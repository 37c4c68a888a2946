"""Wide runs draw the settings of their cluster; narrow ones keep theirs, and steps do not depend on them."""

from __future__ import annotations

from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.shape import is_lone, shaped
from harness.scenario.file import parse
from harness.scenario.text import text_of
from harness.target.settings import Settings
from tests.faults import NEMESES

SEEDS = range(300)
DRAWN = [draw_schedule(seed, NEMESES) for seed in SEEDS]
WIDE = [drawn for drawn in DRAWN if drawn.further]
NARROW = [drawn for drawn in DRAWN if not drawn.further]


def test_wide_runs_have_clusters_of_every_shape() -> None:
    settings = [drawn.settings for drawn in WIDE]
    assert {True, False} == {each.unclean_election for each in settings}
    assert {1, 2, 3} == {each.min_isr for each in settings}
    assert {None, 30, 60, 100, 150, 250, 400} == {each.replica_lag_ms_max for each in settings}
    assert {0, 1, 2, 4, 16} == {each.flush_messages for each in settings}
    assert {None, 90, 150, 300, 600} == {each.segment_bytes for each in settings}
    assert {1, 2, 3} == {len(drawn.replicas) for drawn in WIDE}
    assert {2, 3, 4, 5} <= {len(drawn.nodes) for drawn in WIDE}
    assert any(len(draw_schedule(seed, NEMESES).nodes) == 1 for seed in range(2000) if is_lone(seed))


def test_narrow_runs_keep_their_settings() -> None:
    settings = [drawn.settings for drawn in NARROW]
    assert not any(each.unclean_election or each.flush_messages or each.segment_bytes for each in settings)
    assert {1, 2} == {each.min_isr for each in settings}
    assert {2, 3} == {len(drawn.replicas) for drawn in NARROW}


def test_min_isr_is_never_more_than_the_replicas() -> None:
    assert {1} == {shaped(seed, Settings(min_isr=2), 1).min_isr for seed in SEEDS}
    assert all(drawn.settings.min_isr <= len(drawn.replicas) for drawn in WIDE)


def test_lone_partition_has_no_step_that_needs_another_replica() -> None:
    lone = [drawn for drawn in WIDE if len(drawn.replicas) == 1]
    assert lone
    for drawn in lone:
        words = {str(step.act).split()[0] for step in drawn.steps if " of " not in str(step.act)}
        assert not words & {"elect", "cut", "double"}
        assert drawn == parse(drawn.name, text_of(drawn), "again", NEMESES)

"""harness/report/fates_svg.py: each copy of a lost record is a bar from its append to its end."""

from __future__ import annotations

from checkers.judge import check_in_process
from harness.model import Anomaly, Fates, Kind
from harness.report.fates_svg import draw_fates
from tests.checkers.plants.edit import Edit


def _loss(run: str, kind: Kind) -> tuple[Edit, Anomaly]:
    edit = Edit(run)
    (found,) = (anomaly for anomaly in check_in_process(edit.ops) if anomaly.kind is kind)
    return edit, found


def test_fates_show_every_copy_and_what_ended_it() -> None:
    edit, found = _loss("local-kip101-2", Kind.PERMITTED)
    assert found.fates is not None
    drawn = draw_fates(found.fates, {op.index: op for op in edit.ops})
    assert drawn is not None
    assert ">A<" in drawn.names
    assert ">B<" in drawn.names
    assert "~ lost it unflushed with its power at 1.165 s" in drawn.plot
    assert "B leads epoch 3 without it" in drawn.plot
    assert "acknowledged" in drawn.plot


def test_fates_mark_what_the_system_lost() -> None:
    edit, found = _loss("local-kip101-1-hw", Kind.LOST)
    assert found.fates is not None
    drawn = draw_fates(found.fates, {op.index: op for op in edit.ops})
    assert drawn is not None
    assert "✗ truncated it at 2.090 s to its high watermark (3)" in drawn.plot
    assert "by-bug" in drawn.plot


def test_fates_are_not_drawn_when_the_history_lacks_an_op_that_they_name() -> None:
    _, found = _loss("local-kip101-1-hw", Kind.LOST)
    assert found.fates is not None
    assert draw_fates(found.fates, {}) is None


def test_fates_survive_json() -> None:
    _, found = _loss("local-kip101-2", Kind.PERMITTED)
    assert found.fates == Fates.from_dict(found.fates.to_dict()) if found.fates else False
    assert found == Anomaly.from_dict(found.to_dict())

"""The high watermark: what it may pass, and when it may be lower than before."""

from __future__ import annotations

from typing import Final

from harness.model import Kind, Source
from tests.checkers.plants.changes import BROKER, Change, set_line
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant

HIGH_WATERMARK: Final = Kind.WRONG_HIGH_WATERMARK


def _then(node: str, to: int, *, nth: int = -1) -> Change:
    """Return a change that adds another high watermark of the node after its nth one."""
    return lambda edit: edit.again(edit.find(BROKER, "high-watermark", node, nth=nth), to=to)


FALL_1 = plant("high-watermark-falls-1", "sim-clean-8", HIGH_WATERMARK)(_then("A", 1, nth=0))
FALL_2 = plant("high-watermark-falls-2", "local-kip101-1", HIGH_WATERMARK)(_then("A", 4))
FALL_3 = plant("high-watermark-falls-3", "sim-clean", HIGH_WATERMARK)(
    set_line(BROKER, "leader", "B", nth=-1, high_watermark=2)
)
FALL_OK = plant("high-watermark-falls-at-follower-lawful", "sim-clean")(
    lambda edit: [
        edit.again(line := edit.find(BROKER, "high-watermark", "C", nth=0), to=0),
        edit.again(line, after=edit.lines[edit.at(line) + 1]),
    ]
)
ABOVE_1 = plant("high-watermark-above-end-1", "sim-clean", HIGH_WATERMARK)(_then("C", 90))
ABOVE_2 = plant("high-watermark-above-end-2", "local-kip101-1", HIGH_WATERMARK)(_then("A", 6))
ABOVE_3 = plant("high-watermark-above-end-3", "local-kip101-2", HIGH_WATERMARK, Kind.PERMITTED)(
    set_line(BROKER, "recovered", "B", high_watermark=2)
)


def _early(edit: Edit) -> None:
    """Move the first high watermark of the leader before every copy of its followers."""
    line = edit.find(BROKER, "high-watermark", to=2)
    edit.move(line, after=edit.find(BROKER, "append", line["process"], role="leader"))


def _uncopied(node: str) -> Change:
    return lambda edit: edit.drop(*edit.all(BROKER, "append", node))


PASSES_1 = plant("high-watermark-passes-isr-1", "sim-clean-8", HIGH_WATERMARK)(_early)
PASSES_2 = plant("high-watermark-passes-isr-2", "sim-unpromised", HIGH_WATERMARK, Kind.UNPROMISED)(_early)
PASSES_3 = plant("high-watermark-passes-isr-3", "sim-last-standing", HIGH_WATERMARK, Kind.LAST_STANDING)(_early)
TOLD_1 = plant("high-watermark-told-above-1", "sim-clean", HIGH_WATERMARK)(
    set_line(Source.CLIENT, "read", nth=-1, high_watermark=99)
)
TOLD_2 = plant("high-watermark-told-and-shorter", "kafka-kip101-1", HIGH_WATERMARK)(
    set_line(Source.CLIENT, "read", nth=-1, high_watermark=99)
)
TOLD_3 = plant("high-watermark-told-below", "local-kip101-1", HIGH_WATERMARK, Kind.WRONG_READ)(
    lambda edit: _shorter(edit.find(Source.CLIENT, "read", nth=-1, type="ok"))
)


def _shorter(line: Line) -> None:
    line["value"]["high_watermark"] -= 1
    line["value"]["records"] = line["value"]["records"][:-1]


def _reads_again(lower: int) -> Change:
    """Return a change in which a client reads once more, and is told a lower high watermark."""

    def change(edit: Edit) -> None:
        asked, told = (edit.find(Source.CLIENT, "read", nth=-1, type=t) for t in ("invoke", "ok"))
        twin = edit.again(asked, after=told)
        again = edit.again(told, after=twin)
        for _ in range(lower):
            _shorter(again)

    return change


TOLD_4 = plant(
    "high-watermark-told-and-lower-1", "kafka-kip101-2", HIGH_WATERMARK, Kind.PERMITTED, Kind.WRONG_READ
)(_reads_again(1))
TOLD_5 = plant("high-watermark-told-and-lower-2", "kafka-kip101-1", HIGH_WATERMARK, Kind.WRONG_READ)(
    _reads_again(2)
)
TOLD_6 = plant("high-watermark-told-and-lower-3", "sim-clean-8", HIGH_WATERMARK, Kind.WRONG_READ)(_reads_again(1))
TOLD_OK = plant("high-watermark-told-again-lawful", "kafka-kip101-2", Kind.PERMITTED)(_reads_again(0))


# --- more, and lawful twins --------------------------------------------------------------------------------------
def _dips(node: str) -> Change:
    """Return a change in which the high watermark of a follower falls, and rises again: its leader may restart."""

    def change(edit: Edit) -> None:
        line = edit.find(BROKER, "high-watermark", node, nth=0)
        edit.again(line, after=edit.again(line, to=0))

    return change


def _just_in_time(edit: Edit) -> None:
    """Move the first high watermark of the leader to the moment when its followers have told it that they can."""
    line = edit.find(BROKER, "high-watermark", to=2)
    told = [each for each in edit.all(Source.FABRIC, "fetch", offset=2) if edit.at(each) < edit.at(line)]
    edit.move(line, after=told[-1])


LAWFUL = [
    plant("high-watermark-falls-1-lawful", "sim-clean-8")(_dips("B")),
    plant("high-watermark-falls-2-lawful", "local-kip101-1")(_dips("A")),
    plant("high-watermark-falls-3-lawful", "sim-clean")(_dips("C")),
    plant("high-watermark-above-end-3-lawful", "local-kip101-2", Kind.PERMITTED)(
        set_line(BROKER, "recovered", "B", high_watermark=1)
    ),
    plant("high-watermark-passes-isr-1-lawful", "sim-clean-8")(_just_in_time),
    plant("high-watermark-passes-isr-2-lawful", "sim-unpromised", Kind.UNPROMISED)(_just_in_time),
    plant("high-watermark-passes-isr-3-lawful", "sim-last-standing", Kind.LAST_STANDING)(_just_in_time),
    plant("high-watermark-told-and-lower-1-lawful", "kafka-kip101-2", Kind.PERMITTED)(_reads_again(0)),
    plant("high-watermark-told-and-lower-2-lawful", "kafka-kip101-1")(_reads_again(0)),
    plant("high-watermark-told-and-lower-3-lawful", "sim-clean-8")(_reads_again(0)),
]

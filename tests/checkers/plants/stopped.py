"""Schedules that the live check ended: a rule finds what it saw, or the run is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.model import Kind, Source
from tests.checkers.plants.changes import last_read, place, read_again
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant


def _stop(edit: Edit, rule: str, *proof: Line, offsets: Sequence[Sequence[int]] = (), **value: Any) -> None:
    """Let the live check have ended the schedule just before healing, as it saw these lines."""
    about = {"rule": rule, **place(edit), "offsets": offsets, "sentence": "Something is wrong."}
    healed = edit.find(Source.RUNNER, "healed")
    stop = edit.insert(healed, Source.RUNNER, "stopped", "runner", before=True, **(about | value))
    edit.change(stop, proof=[edit.at(line) for line in proof])


def _high_watermark_fell(edit: Edit) -> None:
    first = edit.find(Source.BROKER, "high-watermark", "A")
    _stop(edit, "high-watermark-falls", first, edit.again(first, to=1))


def _nothing_fell(edit: Edit) -> None:
    """The watch says that a high watermark fell, and none did."""
    _stop(edit, "high-watermark-falls", *edit.all(Source.BROKER, "high-watermark", "A")[:2])


def _without_proof(edit: Edit) -> None:
    _stop(edit, "read-goes-back")


def _elsewhere(edit: Edit) -> None:
    """A read goes back, and the live check saw something else that no rule finds."""
    records = last_read(edit)["value"]["records"]
    edit.change(last_read(edit), records=[records[1], records[0], *records[2:]])
    _stop(edit, "high-watermark-falls", edit.find(Source.BROKER, "high-watermark"))


def _of_no_partition(edit: Edit) -> None:
    _stop(edit, "read-goes-back", partition=7)


def _lost(edit: Edit) -> None:
    """The live check names no op of the loss, but an offset at which a record was acknowledged."""
    read, records = last_read(edit), last_read(edit)["value"]["records"]
    read_again(edit, records=[*records[:2], *records[3:]])
    _stop(edit, "read-goes-back", read, offsets=[[records[2][0], records[2][0] + 1]])


STOPPED = [
    plant("stopped-at-a-high-watermark-that-falls", "sim-clean-8", Kind.WRONG_HIGH_WATERMARK)(
        _high_watermark_fell
    ),
    plant("stopped-for-nothing", "sim-clean-8", Kind.UNCHECKED)(_nothing_fell),
    plant("stopped-for-nothing-kafka", "kafka-kip101-1", Kind.UNCHECKED)(_without_proof),
    plant("stopped-for-something-else", "local-kip101-1", Kind.WRONG_READ, Kind.UNCHECKED)(_elsewhere),
    plant("stopped-at-no-partition", "local-kip101-1", Kind.UNCHECKED)(_of_no_partition),
    plant("stopped-at-an-offset-of-a-loss", "local-kip101-1", Kind.WRONG_READ, Kind.LOST)(_lost),
]

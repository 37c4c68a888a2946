"""Reads, and the order of one producer."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import last_read, read_again
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant


# --- one producer's order ----------------------------------------------------------------------------------------
def _swapped(edit: Edit, process: str, one: int, other: int) -> None:
    """Let one producer have sent the record at one offset only after the record at another was acknowledged."""
    lines = [line for line in edit.all(Source.CLIENT, "produce") if line["process"] == process]
    ok = {line["value"]["offset"]: line for line in lines if line["type"] == "ok"}
    asked = {line["value"]["value"]: line for line in lines if line["type"] == "invoke"}
    early, late = ok[other], ok[one]
    edit.move(asked[late["value"]["value"]], after=early)
    edit.move(late, after=asked[late["value"]["value"]])


@plant("producer-order-1", "local-kip101-1", Kind.REORDERED)
def reordered_1(edit: Edit) -> None:
    _swapped(edit, "client-1", 0, 2)


@plant("producer-order-2", "kafka-kip101-1", Kind.REORDERED)
def reordered_2(edit: Edit) -> None:
    _swapped(edit, "client-1", 0, 1)


@plant("producer-order-3", "sim-clean", Kind.REORDERED)
def reordered_3(edit: Edit) -> None:
    lines = [line for line in edit.all(Source.CLIENT, "produce", type="ok") if line["value"]["acks"] == -1]
    first, second = lines[0], lines[1]
    asked = edit.find(Source.CLIENT, "produce", first["process"], "invoke", value=first["value"]["value"])
    for line in edit.lines:
        if line["f"] == "produce" and line["value"].get("value") == first["value"]["value"]:
            line["process"] = second["process"]
    edit.move(asked, after=second)
    edit.move(first, after=asked)


@plant("answered-in-another-order-lawful", "local-kip101-1")
def answered_otherwise(edit: Edit) -> None:
    """Records of a client that sends again, under way together, may be answered in any order."""
    edit.change(edit.lines[0], sends_once=False)
    first, second = edit.all(Source.CLIENT, "produce", "client-1", "ok")[:2]
    edit.move(first, after=second)


# --- reads -------------------------------------------------------------------------------------------------------
@plant("read-goes-back", "local-kip101-1", Kind.WRONG_READ)
def read_goes_back(edit: Edit) -> None:
    records = last_read(edit)["value"]["records"]
    edit.change(last_read(edit), records=[records[1], records[0], *records[2:]])


@plant("read-shows-a-record-twice", "kafka-kip101-1", Kind.WRONG_READ)
def read_twice(edit: Edit) -> None:
    records = last_read(edit)["value"]["records"]
    edit.change(last_read(edit), records=[records[0], *records])


@plant("read-skips", "sim-clean", Kind.WRONG_READ, Kind.LOST)
def read_skips(edit: Edit) -> None:
    """The first read of two skips a record; the last one misses it too, which is a loss."""
    records = last_read(edit)["value"]["records"]
    edit.change(last_read(edit), records=records[1:])


@plant("read-stops-short", "local-kip101-2", Kind.WRONG_READ, Kind.PERMITTED, Kind.WRONG_HIGH_WATERMARK)
def read_stops_short(edit: Edit) -> None:
    records = last_read(edit)["value"]["records"]
    read_again(edit, records=records[:-1], high_watermark=len(records) - 1)


@plant("read-shows-what-is-rewritten", "local-kip101-1", Kind.WRONG_READ)
def read_rewritten(edit: Edit) -> None:
    """A first read shows another record than the log and the last read."""
    read, records = last_read(edit), last_read(edit)["value"]["records"]
    read_again(edit)
    edit.change(read, records=[*records[:-1], [records[-1][0], "m9.9"]])


@plant("read-shows-what-no-log-holds", "kafka-kip101-2", Kind.WRONG_READ, Kind.PERMITTED)
def read_of_nothing(edit: Edit) -> None:
    records = last_read(edit)["value"]["records"]
    end = records[-1][0] + 1
    edit.change(last_read(edit), records=[*records, [end, "m9.9"]])


@plant("read-twice-alike-lawful", "local-kip101-1")
def read_alike(edit: Edit) -> None:
    read_again(edit)

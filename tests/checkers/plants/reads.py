"""Reads, and the order of one producer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from harness.model import Kind, Source
from tests.checkers.plants.changes import Change, last_read, place, read_again, resends
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant

Records: TypeAlias = list[list[Any]]


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


# --- more, and lawful twins --------------------------------------------------------------------------------------
def _reads(shown: Callable[[Records], Records]) -> Change:
    """Return a change in which a second read shows all records, and the first what is made of them."""

    def change(edit: Edit) -> None:
        read, records = last_read(edit), last_read(edit)["value"]["records"]
        read_again(edit)
        edit.change(read, records=shown(records))

    return change


def _alike(edit: Edit) -> None:
    """Two clients read the same."""
    read_again(edit)


def _before_the_last(edit: Edit) -> None:
    """A client reads before the last record is sent: it shows all but that one."""
    last = edit.all(Source.CLIENT, "produce", type="invoke")[-1]
    value = last_read(edit)["value"]
    short = {"records": value["records"][:-1], "high_watermark": value["records"][-1][0]}
    asked = edit.insert(last, Source.CLIENT, "read", "client-99", "invoke", before=True, **place(edit))
    edit.insert(asked, Source.CLIENT, "read", "client-99", "ok", **(value | short))


def _short(edit: Edit) -> None:
    """A second client reads all but the last record, which was acknowledged long before."""
    records = last_read(edit)["value"]["records"]
    read_again(edit, records=records[:-1], high_watermark=records[-1][0])


def _gone_later(edit: Edit) -> None:
    """A first read shows a record above all others, and its high watermark: later that record is not there."""
    read, value = last_read(edit), dict(last_read(edit)["value"])
    end = value["records"][-1][0] + 1
    read_again(edit)
    edit.change(read, records=[*value["records"], [end, "m9.9"]], high_watermark=end + 1)


def _refused(edit: Edit) -> None:
    """A first read fails, and shows nothing."""
    asked = edit.insert(
        edit.find(Source.CLIENT, "read", type="invoke"),
        Source.CLIENT,
        "read",
        "client-99",
        "invoke",
        before=True,
        **place(edit),
    )
    edit.insert(asked, Source.CLIENT, "read", "client-99", "fail", **place(edit), error="no leader")


def _swap_first(records: Records) -> Records:
    return [records[1], records[0], *records[2:]]


def _without_second(records: Records) -> Records:
    return [records[0], *records[2:]]


def _rewritten(records: Records) -> Records:
    return [*records[:-1], [records[-1][0], "m9.9"]]


BACK = [
    plant("read-goes-back-lawful", "local-kip101-1")(_alike),
    plant("read-goes-back-kafka", "kafka-kip101-1", Kind.WRONG_READ)(_reads(_swap_first)),
    plant("read-goes-back-kafka-lawful", "kafka-kip101-1")(_alike),
    plant("read-goes-back-sim", "sim-clean-8", Kind.WRONG_READ)(_reads(_swap_first)),
    plant("read-goes-back-sim-lawful", "sim-clean-8")(_alike),
]
SKIPS = [
    plant("read-skips-lawful", "sim-clean")(_before_the_last),
    plant("read-skips-kafka", "kafka-kip101-1", Kind.WRONG_READ)(_reads(_without_second)),
    plant("read-skips-kafka-lawful", "kafka-kip101-1")(_before_the_last),
    plant("read-skips-local", "local-kip101-1", Kind.WRONG_READ)(_reads(_without_second)),
    plant("read-skips-local-lawful", "local-kip101-1")(_before_the_last),
]
SHORT = [
    plant("read-stops-short-lawful", "local-kip101-2", Kind.PERMITTED)(_before_the_last),
    plant("read-stops-short-kafka", "kafka-kip101-1", Kind.WRONG_HIGH_WATERMARK, Kind.WRONG_READ)(_short),
    plant("read-stops-short-kafka-lawful", "kafka-kip101-1")(_before_the_last),
    plant("read-stops-short-sim", "sim-clean-8", Kind.WRONG_HIGH_WATERMARK, Kind.WRONG_READ)(_short),
    plant("read-stops-short-sim-lawful", "sim-clean-8")(_before_the_last),
]
REWRITTEN = [
    plant("read-shows-what-is-rewritten-lawful", "local-kip101-1")(_refused),
    plant("read-shows-what-is-rewritten-kafka", "kafka-kip101-1", Kind.WRONG_READ)(_reads(_rewritten)),
    plant("read-shows-what-is-rewritten-kafka-lawful", "kafka-kip101-1")(_refused),
    plant("read-shows-what-is-rewritten-sim", "sim-clean-8", Kind.WRONG_READ)(_reads(_rewritten)),
    plant("read-shows-what-is-rewritten-sim-lawful", "sim-clean-8")(_refused),
]
VANISHES = [
    plant(
        "read-shows-what-vanishes", "local-kip101-2", Kind.WRONG_HIGH_WATERMARK, Kind.WRONG_READ, Kind.PERMITTED
    )(_gone_later),
    plant("read-shows-what-vanishes-lawful", "local-kip101-2", Kind.PERMITTED)(_alike),
    plant(
        "read-shows-what-vanishes-kafka",
        "kafka-kip101-2",
        Kind.WRONG_HIGH_WATERMARK,
        Kind.WRONG_READ,
        Kind.PERMITTED,
    )(_gone_later),
    plant("read-shows-what-vanishes-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(_alike),
    plant("read-shows-what-vanishes-sim", "sim-clean", Kind.WRONG_HIGH_WATERMARK, Kind.WRONG_READ)(_gone_later),
    plant("read-shows-what-vanishes-sim-lawful", "sim-clean")(_alike),
]


def _beyond(edit: Edit) -> None:
    """The last read shows a record above all that any log holds."""
    value = last_read(edit)["value"]
    end = value["records"][-1][0] + 1
    edit.change(last_read(edit), records=[*value["records"], [end, "m9.9"]], high_watermark=end + 1)


NOWHERE = [
    plant("read-shows-what-no-log-holds-lawful", "kafka-kip101-2", Kind.PERMITTED)(_alike),
    plant("read-shows-what-no-log-holds-local", "local-kip101-1", Kind.WRONG_HIGH_WATERMARK, Kind.WRONG_READ)(
        _beyond
    ),
    plant("read-shows-what-no-log-holds-local-lawful", "local-kip101-1")(_alike),
    plant("read-shows-what-no-log-holds-sim", "sim-clean-8", Kind.WRONG_HIGH_WATERMARK, Kind.WRONG_READ)(_beyond),
    plant("read-shows-what-no-log-holds-sim-lawful", "sim-clean-8")(_alike),
]


def _under_way_together(edit: Edit) -> None:
    """The first two records are sent before either is answered, by a client that may send again: any order."""
    resends(edit)
    first, second = edit.all(Source.CLIENT, "produce", type="ok")[:2]
    asked = edit.find(Source.CLIENT, "produce", second["process"], "invoke", value=second["value"]["value"])
    if edit.at(asked) > edit.at(first):
        edit.move(first, after=asked)
    edit.move(first, after=second)


ORDER = [
    plant("producer-order-1-lawful", "local-kip101-1")(_under_way_together),
    plant("producer-order-2-lawful", "kafka-kip101-1")(_under_way_together),
    plant("producer-order-3-lawful", "sim-clean")(_under_way_together),
]

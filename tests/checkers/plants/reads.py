"""Final logs beside each other, reads, the order of one producer, checkpoints, and logs that begin later."""

from __future__ import annotations

from typing import Any

from harness.model import Kind, Source
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant

# local-kip101-1: A leads B, offsets 0-4, epoch 1 from 4. local-kip101-2: B leads A, offsets 0-4, epoch 3 from 1.
# kafka-kip101-1 and kafka-kip101-2: Apache Kafka 3.9.1, whose brokers report nothing.


def _leader(edit: Edit) -> str:
    return str(edit.find(Source.ZOOKEEPER, "leaderAndISR", nth=-1)["value"]["leader"])


def _follower(edit: Edit) -> str:
    return next(each for each in edit.lines[0]["value"]["replicas"] if each != _leader(edit))


def _read(edit: Edit) -> Line:
    return edit.find(Source.CLIENT, "read", type="ok", nth=-1)


def _again(edit: Edit, **value: Any) -> Line:
    """Insert a second read of another client after the last one; return its ok."""
    read = _read(edit)
    asked = edit.insert(read, Source.CLIENT, "read", "client-99", "invoke", **_place(edit))
    return edit.insert(asked, Source.CLIENT, "read", "client-99", "ok", **(read["value"] | value))


def _place(edit: Edit) -> dict[str, Any]:
    setup = edit.lines[0]["value"]
    return {"topic": setup["topic"], "partition": setup["partition"]}


# --- a follower longer than its leader ---------------------------------------------------------------------------
def _longer(edit: Edit) -> None:
    """The follower keeps a record that m3's last produce sent, and its leader does not have at the end."""
    leader = _leader(edit)
    last = edit.snapshot(leader)["value"]["log_end_offset"] - 1
    edit.drop_batch(leader, last, cut=True)


@plant("longer-on-kafka-1", "kafka-kip101-1", Kind.LONGER, Kind.LOST, Kind.WRONG_HIGH_WATERMARK)
def longer_1(edit: Edit) -> None:
    _longer(edit)


@plant("longer-on-kafka-2", "kafka-kip101-2", Kind.LONGER, Kind.LOST, Kind.PERMITTED, Kind.WRONG_HIGH_WATERMARK)
def longer_2(edit: Edit) -> None:
    _longer(edit)


@plant("longer-on-ours", "sim-clean", Kind.LONGER, Kind.LOST, Kind.WRONG_HIGH_WATERMARK)
def longer_3(edit: Edit) -> None:
    _longer(edit)


@plant("shorter-not-healed-lawful", "kafka-kip101-1", Kind.STUCK)
def shorter(edit: Edit) -> None:
    """A follower that is behind, in a cluster that did not heal, is stuck and no more."""
    follower = _follower(edit)
    last = edit.snapshot(follower)["value"]["log_end_offset"] - 1
    edit.drop_batch(follower, last, cut=True)
    healed = edit.find(Source.RUNNER, "healed")
    healed["type"] = "fail"
    healed["value"] = {"missing": "a replica is behind", "waited": True}


# --- one record, two epochs --------------------------------------------------------------------------------------
def _stamped(edit: Edit, nth: int) -> None:
    batch = edit.batches(_follower(edit))[nth]
    edit.change(batch, epoch=batch["value"]["epoch"] + 1)


@plant("epochs-differ-1", "local-kip101-1", Kind.EPOCHS_DIFFER, Kind.CHECKPOINT, Kind.DISORDER)
def stamped_1(edit: Edit) -> None:
    batch = edit.batches(_follower(edit))[0]
    edit.change(batch, epoch=2)


@plant("epochs-differ-2", "kafka-kip101-1", Kind.EPOCHS_DIFFER, Kind.CHECKPOINT)
def stamped_2(edit: Edit) -> None:
    _stamped(edit, -1)


@plant("epochs-differ-3", "kafka-kip101-2", Kind.EPOCHS_DIFFER, Kind.CHECKPOINT, Kind.PERMITTED)
def stamped_3(edit: Edit) -> None:
    _stamped(edit, -1)


@plant("epochs-of-another-format-lawful", "kafka-kip101-1")
def other_format(edit: Edit) -> None:
    """A follower that stores an old message format has no epochs."""
    follower = _follower(edit)
    edit.change(edit.snapshot(follower), epochs=[])
    for batch in edit.batches(follower):
        edit.change(batch, epoch=-1, magic=1)


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
    records = _read(edit)["value"]["records"]
    edit.change(_read(edit), records=[records[1], records[0], *records[2:]])


@plant("read-shows-a-record-twice", "kafka-kip101-1", Kind.WRONG_READ)
def read_twice(edit: Edit) -> None:
    records = _read(edit)["value"]["records"]
    edit.change(_read(edit), records=[records[0], *records])


@plant("read-skips", "sim-clean", Kind.WRONG_READ, Kind.LOST)
def read_skips(edit: Edit) -> None:
    """The first read of two skips a record; the last one misses it too, which is a loss."""
    records = _read(edit)["value"]["records"]
    edit.change(_read(edit), records=records[1:])


@plant("read-stops-short", "local-kip101-2", Kind.WRONG_READ, Kind.PERMITTED, Kind.WRONG_HIGH_WATERMARK)
def read_stops_short(edit: Edit) -> None:
    records = _read(edit)["value"]["records"]
    _again(edit, records=records[:-1], high_watermark=len(records) - 1)


@plant("read-shows-what-is-rewritten", "local-kip101-1", Kind.WRONG_READ)
def read_rewritten(edit: Edit) -> None:
    """A first read shows another record than the log and the last read."""
    read, records = _read(edit), _read(edit)["value"]["records"]
    _again(edit)
    edit.change(read, records=[*records[:-1], [records[-1][0], "m9.9"]])


@plant("read-shows-what-no-log-holds", "kafka-kip101-2", Kind.WRONG_READ, Kind.PERMITTED)
def read_of_nothing(edit: Edit) -> None:
    records = _read(edit)["value"]["records"]
    end = records[-1][0] + 1
    edit.change(_read(edit), records=[*records, [end, "m9.9"]])


@plant("read-twice-alike-lawful", "local-kip101-1")
def read_alike(edit: Edit) -> None:
    _again(edit)


@plant("read-of-a-log-that-begins-later-lawful", "local-kip101-1")
def read_later(edit: Edit) -> None:
    """Retention removed the first batch everywhere, and the read begins behind it."""
    retained(edit)
    records = _read(edit)["value"]["records"]
    edit.change(_read(edit), records=[each for each in records if each[0] >= 3])


# --- logs that begin later ---------------------------------------------------------------------------------------
def retained(edit: Edit) -> None:
    """Let retention remove offsets 0-2 of both replicas, with their epoch's start."""
    for node in edit.lines[0]["value"]["replicas"]:
        snapshot = edit.snapshot(node)
        epochs = [[epoch, max(start, 3)] for epoch, start in snapshot["value"]["epochs"]]
        end = snapshot["value"]["log_end_offset"]
        edit.drop(edit.batch_at(node, 0))
        edit.change(snapshot, log_start_offset=3, epochs=epochs, batches=len(edit.batches(node)))
        edit.change(snapshot, log_end_offset=end)


@plant("retention-removed-records-lawful", "local-kip101-1")
def removed(edit: Edit) -> None:
    """The last read still asks for all records: it began before the retention."""
    retained(edit)


@plant("deleted-records-differ-lawful", "kafka-kip101-1")
def deleted_differ(edit: Edit) -> None:
    """DeleteRecords moved the logs' start; one replica still holds other bytes below it."""
    for node in edit.lines[0]["value"]["replicas"]:
        snapshot = edit.snapshot(node)
        epochs = [[epoch, max(start, 1)] for epoch, start in snapshot["value"]["epochs"]]
        edit.change(snapshot, log_start_offset=1, epochs=epochs)
    records = _read(edit)["value"]["records"]
    edit.change(_read(edit), records=records[1:])
    batch = edit.batch_at(_follower(edit), 0)
    batch["value"]["records"][0][1] = "0" * 16


@plant("records-at-the-start-differ", "kafka-kip101-1", Kind.DIVERGED, Kind.ALTERED)
def start_differs(edit: Edit) -> None:
    batch = edit.batch_at(_follower(edit), 0)
    batch["value"]["records"][0][1] = "0" * 16


# --- checkpoints -------------------------------------------------------------------------------------------------
def _entry(edit: Edit, epoch: int, start: int) -> None:
    snapshot = edit.snapshot(_follower(edit))
    epochs = sorted([*snapshot["value"]["epochs"], [epoch, start]])
    edit.change(snapshot, epochs=epochs)


@plant("checkpoint-of-an-epoch-that-never-was", "local-kip101-1", Kind.CHECKPOINT)
def never_was(edit: Edit) -> None:
    _entry(edit, 7, 5)


@plant("checkpoint-beyond-the-log", "kafka-kip101-1", Kind.CHECKPOINT)
def beyond(edit: Edit) -> None:
    _entry(edit, 9, 99)


@plant("checkpoint-falls", "local-kip101-2", Kind.CHECKPOINT, Kind.PERMITTED)
def falls(edit: Edit) -> None:
    snapshot = edit.snapshot(_follower(edit))
    edit.change(snapshot, epochs=[*reversed(snapshot["value"]["epochs"])])

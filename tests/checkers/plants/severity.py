"""A proven loss is a loss, also in a cluster that did not heal; without one, the run hangs and no more."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import Change, last_read, not_healed, replicas_of
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant

_LOST = (Kind.LOST, Kind.NOT_REPLICATED)


def _rewritten(offset: int) -> Change:
    """Return a change in which all logs, and the read, have another record at the offset; nothing heals."""

    def change(edit: Edit) -> None:
        for node in replicas_of(edit):
            edit.rewrite(node, offset, "m9.9")
        last_read(edit)["value"]["records"][offset][1] = "m9.9"
        not_healed(edit)

    return change


def _gone(edit: Edit) -> None:
    """Let the last record be gone from every log and the read, though its leader led on; nothing heals."""
    last = edit.find(Source.CLIENT, "produce", type="ok", nth=-1)["value"]["offset"]
    for node in replicas_of(edit):
        edit.drop_batch(node, last)
        mark = edit.snapshot(node)["value"]
        mark["high_watermark"] = min(mark["high_watermark"], last)
    read = last_read(edit)
    edit.change(read, records=read["value"]["records"][:-1], high_watermark=last)
    not_healed(edit)


def _never_answered(edit: Edit) -> None:
    """The same, but nobody was told of the record, or saw it: the leader may never have written it."""
    _gone(edit)
    last = edit.find(Source.CLIENT, "produce", type="ok", nth=-1)
    end = last["value"].pop("offset") + 1
    last["type"], last["value"]["error"] = "info", "no answer in time"
    edit.drop(
        *edit.all(Source.BROKER, "append", base=end - 1),
        *edit.all(Source.BROKER, "high-watermark", to=end),
        *edit.all(Source.FABRIC, "fetch", offset=end),
        *edit.all(Source.FABRIC, "fetched", offset=end),
    )


SEVERITY = [
    plant("hang-beside-a-rewritten-record", "local-kip101-1", Kind.LOST, Kind.PHANTOM, Kind.STUCK)(_rewritten(3)),
    plant("hang-beside-a-rewritten-record-lawful", "local-kip101-1", Kind.STUCK)(not_healed),
    plant("hang-beside-a-rewritten-record-kafka", "kafka-kip101-1", Kind.LOST, Kind.PHANTOM, Kind.STUCK)(
        _rewritten(4)
    ),
    plant("hang-beside-a-rewritten-record-kafka-lawful", "kafka-kip101-1", Kind.STUCK)(not_healed),
    plant("hang-beside-a-rewritten-record-sim", "sim-clean-8", Kind.LOST, Kind.PHANTOM, Kind.STUCK)(_rewritten(2)),
    plant("hang-beside-a-rewritten-record-sim-lawful", "sim-clean-8", Kind.STUCK)(not_healed),
    plant("hang-beside-a-record-that-is-gone", "local-kip101-1", Kind.LOST, Kind.WRONG_HIGH_WATERMARK, Kind.STUCK)(
        _gone
    ),
    plant("hang-beside-a-record-that-is-gone-lawful", "local-kip101-1", Kind.STUCK)(_never_answered),
    plant("hang-beside-a-record-that-is-gone-kafka", "kafka-kip101-1", Kind.LOST, Kind.STUCK)(_gone),
    plant("hang-beside-a-record-that-is-gone-kafka-lawful", "kafka-kip101-1", Kind.STUCK)(_never_answered),
    plant(
        "hang-beside-a-record-that-is-gone-sim", "sim-clean-8", Kind.LOST, Kind.WRONG_HIGH_WATERMARK, Kind.STUCK
    )(_gone),
    plant("hang-beside-a-record-that-is-gone-sim-lawful", "sim-clean-8", Kind.STUCK)(_never_answered),
    # Losses of real runs, with how each came about.
    plant("hang-beside-a-truncated-record", "local-kip101-1-hw", Kind.LOST, Kind.NOT_REPLICATED, Kind.STUCK)(
        not_healed
    ),
    plant("hang-beside-a-record-lost-by-joining", "local-kafka-7128", Kind.LOST, Kind.NOT_REPLICATED, Kind.STUCK)(
        not_healed
    ),
    plant("hang-beside-a-permitted-loss-lawful", "local-kip101-2", Kind.PERMITTED, Kind.STUCK)(not_healed),
]

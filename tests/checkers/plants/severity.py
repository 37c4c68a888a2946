"""A proven loss is a loss, also in a cluster that did not heal; without one, the run hangs and no more."""

from __future__ import annotations

from harness.model import Kind
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


SEVERITY = [
    plant("hang-beside-a-rewritten-record", "local-kip101-1", Kind.LOST, Kind.PHANTOM, Kind.STUCK)(_rewritten(3)),
    plant("hang-beside-a-rewritten-record-lawful", "local-kip101-1", Kind.STUCK)(not_healed),
    plant("hang-beside-a-rewritten-record-kafka", "kafka-kip101-1", Kind.LOST, Kind.PHANTOM, Kind.STUCK)(
        _rewritten(4)
    ),
    plant("hang-beside-a-rewritten-record-kafka-lawful", "kafka-kip101-1", Kind.STUCK)(not_healed),
    plant("hang-beside-a-rewritten-record-sim", "sim-clean-8", Kind.LOST, Kind.PHANTOM, Kind.STUCK)(_rewritten(2)),
    plant("hang-beside-a-rewritten-record-sim-lawful", "sim-clean-8", Kind.STUCK)(not_healed),
    # Losses of real runs, with how each came about.
    plant("hang-beside-a-truncated-record", "local-kip101-1-hw", Kind.LOST, Kind.NOT_REPLICATED, Kind.STUCK)(
        not_healed
    ),
    plant("hang-beside-a-record-lost-by-joining", "local-kafka-7128", Kind.LOST, Kind.NOT_REPLICATED, Kind.STUCK)(
        not_healed
    ),
    plant("hang-beside-a-permitted-loss-lawful", "local-kip101-2", Kind.PERMITTED, Kind.STUCK)(not_healed),
]

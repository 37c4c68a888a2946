"""Topics that are deleted and created again: what is left of the old one, and what is lost of the new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.logs.record import sent_digest
from harness.model import Kind, Source
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant

Change = Callable[[Edit], Any]
THERE, THERE_2, GONE = "sim-churned", "sim-churned-2", "sim-churned-gone"
# An operator removes orders-1 and orders-2, and they are added again.
REMOVED = "sim-churned-removed"
# An acknowledged record of an earlier generation.
OLD = {THERE: "n1.3.0", THERE_2: "n1.2.3", REMOVED: "m4.0"}
CREATE, DELETE = "create-topic", "delete-topic"
ADD, REMOVE = "add-partitions", "remove-partitions"


def _unanswered(line: Line) -> None:
    """Let a request of a client have no answer."""
    line["type"] = "info"
    line["value"].pop("offset", None)
    line["value"]["error"] = "no answer"


def _refused(line: Line, error: str) -> None:
    line["type"] = "fail"
    line["value"]["error"] = error


def _acknowledgement(edit: Edit, value: str) -> Line:
    return edit.find(Source.CLIENT, "produce", type="ok", value=value)


def _keep(value: str, *nodes: str) -> Change:
    """Return a change that puts a record at the end of these nodes' final logs."""

    def change(edit: Edit) -> None:
        for node in nodes:
            end = edit.snapshot(node)["value"]["log_end_offset"]
            record = [end, sent_digest(value), value]
            edit.put_batch(node, edit.batches(node)[-1], base=end, last=end, records=[record])

    return change


def _kept_old(edit: Edit, run: str, *nodes: str) -> None:
    _keep(OLD[run], *nodes)(edit)


def _kept_doubtful(edit: Edit, run: str) -> None:
    """The same record, of which nobody knows when it was appended."""
    _kept_old(edit, run, "A", "B")
    _unanswered(_acknowledgement(edit, OLD[run]))


def _left_over(edit: Edit) -> None:
    """A node has an empty log of the topic that is gone."""
    done = edit.find(Source.RUNNER, "done")
    snapshot = {"log_start_offset": 0, "log_end_offset": 0, "high_watermark": 0, "epochs": [], "problems": []}
    place = {"topic": "temp", "partition": 0}
    edit.insert(done, Source.LOG, "snapshot", "A", "ok", before=True, **place, **snapshot, batches=0)


def _left_over_in_doubt(edit: Edit) -> None:
    """The same log, and nobody knows whether the topic was deleted."""
    _left_over(edit)
    edit.drop(
        edit.find(Source.CLIENT, DELETE, type="fail"), edit.find(Source.CLIENT, DELETE, type="invoke", nth=-1)
    )
    _unanswered(edit.find(Source.CLIENT, DELETE, type="ok"))


def _gone_new(edit: Edit) -> None:
    for node in ("A", "B"):
        edit.drop_batch(node, edit.snapshot(node)["value"]["log_end_offset"] - 1)


def _gone_unanswered(edit: Edit) -> None:
    values = [record[2] for record in edit.batches("A")[-1]["value"]["records"]]
    _gone_new(edit)
    for value in values:
        _unanswered(_acknowledgement(edit, value))


def _rewritten(edit: Edit) -> None:
    edit.rewrite("B", 2, "n1.4.9")


def _created_for_nothing(edit: Edit) -> None:
    """A topic is created, so it is said, and the client that deletes it next is told that it is not there."""
    _refused(edit.find(Source.CLIENT, DELETE, type="ok", nth=1), "UNKNOWN_TOPIC_OR_PARTITION")


def _created_in_doubt(edit: Edit) -> None:
    _created_for_nothing(edit)
    _unanswered(edit.find(Source.CLIENT, CREATE, type="ok", nth=1))


def _deleted_for_nothing(edit: Edit) -> None:
    """A topic is deleted, so it is said, and the client that creates it next is told that it is there."""
    _refused(edit.find(Source.CLIENT, CREATE, type="ok", nth=1), "TOPIC_ALREADY_EXISTS")


def _deleted_in_doubt(edit: Edit) -> None:
    _deleted_for_nothing(edit)
    _unanswered(edit.find(Source.CLIENT, DELETE, type="ok"))


def _created_twice(edit: Edit) -> None:
    """A topic that is there is created once more, and that is acknowledged."""
    created = edit.find(Source.CLIENT, CREATE, type="ok", nth=-1)
    asked = edit.find(Source.CLIENT, CREATE, type="invoke", nth=-1)
    edit.again(created, after=edit.again(asked, after=created))


def _created_twice_in_doubt(edit: Edit) -> None:
    _created_twice(edit)
    _unanswered(edit.find(Source.CLIENT, CREATE, type="ok", nth=-1))


def _later(change: Change) -> Change:
    """Return the change of a run in which a delete may take effect after it was acknowledged."""

    def both(edit: Edit) -> None:
        edit.change(edit.lines[0], deletes_later=True)
        change(edit)

    return both


def _never_added(edit: Edit) -> None:
    """They are not added again, so it is said, and both nodes have logs of them."""
    _refused(edit.find(Source.CLIENT, ADD, type="ok"), "REASSIGNMENT_IN_PROGRESS")


def _added_in_doubt(edit: Edit) -> None:
    _unanswered(edit.find(Source.CLIENT, ADD, type="ok"))


def _removed_twice(edit: Edit) -> None:
    """What is gone goes once more."""
    removed = edit.find(Source.CLIENT, REMOVE, type="ok")
    edit.again(removed, after=edit.again(edit.find(Source.CLIENT, REMOVE, type="invoke"), after=removed))


def _removed_twice_in_doubt(edit: Edit) -> None:
    _removed_twice(edit)
    _unanswered(edit.find(Source.CLIENT, REMOVE, type="ok"))


def _of_another_partition(edit: Edit) -> None:
    """What is removed and added again is above this one, whose old records are its own."""
    _kept_old(edit, REMOVED, "A", "B")
    for line in edit.all(Source.CLIENT, REMOVE):
        edit.change(line, partitions=[3])
    for line in edit.all(Source.CLIENT, ADD):
        edit.change(line, first=3)


def _upgraded(rule: str, change: Change) -> Change:
    """Return the change of a run in which A followed a protocol without one of the rules for a while."""

    def both(edit: Edit) -> None:
        setup = edit.lines[0]["value"]
        value = {"node": "A", "protocol": "kip320", "rules": {**setup["rules"], rule: "no"}}
        edit.insert(
            edit.find(Source.BROKER, "started", "A", nth=-1), Source.RUNNER, "installed", "runner", **value
        )
        change(edit)

    return both


GENERATIONS = [
    plant("generation-as-it-was-lawful", THERE)(lambda _: None),
    plant("generation-as-it-was-2-lawful", THERE_2)(lambda _: None),
    plant("generation-gone-lawful", GONE)(lambda _: None),
    plant("generation-kept-old-records", THERE, Kind.OLD_GENERATION)(
        lambda edit: _kept_old(edit, THERE, "A", "B")
    ),
    plant("generation-kept-old-records-lawful", THERE)(lambda edit: _kept_doubtful(edit, THERE)),
    plant("generation-kept-old-records-2", THERE_2, Kind.OLD_GENERATION)(
        lambda edit: _kept_old(edit, THERE_2, "B")
    ),
    plant("generation-kept-old-records-2-lawful", THERE_2)(lambda edit: _kept_doubtful(edit, THERE_2)),
    plant("generation-kept-old-records-by-name-lawful", THERE)(
        _upgraded("topic_identity", lambda edit: _kept_old(edit, THERE, "A", "B"))
    ),
    plant("generation-kept-old-records-by-name", THERE, Kind.OLD_GENERATION)(
        _upgraded("fence_broker_epoch", lambda edit: _kept_old(edit, THERE, "A", "B"))
    ),
    plant("generation-created-for-nothing-by-name", THERE, Kind.WRONG_TOPIC)(
        _upgraded("topic_identity", _created_for_nothing)
    ),
    plant("generation-left-over", GONE, Kind.OLD_GENERATION)(_left_over),
    plant("generation-left-over-lawful", GONE)(_left_over_in_doubt),
    plant("generation-lost-its-own", THERE, Kind.LOST)(_gone_new),
    plant("generation-lost-its-own-lawful", THERE)(_gone_unanswered),
    plant("generation-lost-its-own-2", THERE_2, Kind.LOST)(_gone_new),
    plant("generation-lost-its-own-2-lawful", THERE_2)(_gone_unanswered),
    plant("generation-differs", THERE, Kind.DIVERGED)(_rewritten),
    plant("generation-created-for-nothing", THERE, Kind.WRONG_TOPIC)(_created_for_nothing),
    plant("generation-created-for-nothing-lawful", THERE)(_created_in_doubt),
    plant("generation-deleted-for-nothing", THERE, Kind.WRONG_TOPIC)(_deleted_for_nothing),
    plant("generation-deleted-for-nothing-lawful", THERE)(_deleted_in_doubt),
    plant("generation-created-twice", THERE, Kind.WRONG_TOPIC)(_created_twice),
    plant("generation-created-twice-lawful", THERE)(_created_twice_in_doubt),
    plant("generation-kept-old-records-later", THERE, Kind.OLD_GENERATION)(
        _later(lambda edit: _kept_old(edit, THERE, "A", "B"))
    ),
    plant("generation-left-over-later-lawful", GONE)(_later(_left_over)),
    plant("generation-lost-its-own-later", THERE, Kind.LOST)(_later(_gone_new)),
    plant("generation-created-for-nothing-later", THERE, Kind.WRONG_TOPIC)(_later(_created_for_nothing)),
    plant("generation-deleted-for-nothing-later-lawful", THERE)(_later(_deleted_for_nothing)),
    plant("generation-created-twice-later", THERE, Kind.WRONG_TOPIC)(_later(_created_twice)),
    plant("removed-as-it-was-lawful", REMOVED)(lambda _: None),
    plant("removed-kept-old-records", REMOVED, Kind.OLD_GENERATION)(
        lambda edit: _kept_old(edit, REMOVED, "A", "B")
    ),
    plant("removed-kept-old-records-lawful", REMOVED)(lambda edit: _kept_doubtful(edit, REMOVED)),
    plant("removed-another-partition-lawful", REMOVED)(_of_another_partition),
    plant("removed-left-over", REMOVED, Kind.OLD_GENERATION)(_never_added),
    plant("removed-left-over-lawful", REMOVED)(_added_in_doubt),
    plant("removed-twice", REMOVED, Kind.WRONG_TOPIC)(_removed_twice),
    plant("removed-twice-lawful", REMOVED)(_removed_twice_in_doubt),
]

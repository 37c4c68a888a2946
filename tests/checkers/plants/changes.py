"""Changes that plants of several subjects make, and lines that they look for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from harness.model import Source
from tests.checkers.plants.edit import Edit, Line

BROKER, METADATA = Source.BROKER, Source.METADATA
STATE: Final = "state"

Change = Callable[[Edit], Any]


# --- changes of lines --------------------------------------------------------------------------------------------
def set_line(source: Source, f: str, process: str | None = None, *, nth: int = 0, **value: Any) -> Change:
    """Return a change that sets keys of the nth line of that source, f and process."""
    return lambda edit: edit.change(edit.find(source, f, process, nth=nth), **value)


def set_state(at: int, **value: Any) -> Change:
    """Return a change of the metadata's state of that version."""
    return lambda edit: edit.change(edit.find(METADATA, STATE, version=at), **value)


def without_state(at: int) -> Change:
    """Return a change that drops a state: a watch may miss one."""
    return lambda edit: edit.drop(edit.find(METADATA, STATE, version=at))


def set_up(**value: Any) -> Change:
    """Return a change of the run's set-up."""
    return lambda edit: edit.change(edit.lines[0], **value)


def each_of(*changes: Change) -> Change:
    """Return the changes, one after the other."""
    return lambda edit: [change(edit) for change in changes]


def nothing(edit: Edit) -> None:
    """Change nothing."""


# --- lines -------------------------------------------------------------------------------------------------------
def place(edit: Edit) -> dict[str, Any]:
    """Return the keys that name the run's partition."""
    setup = edit.lines[0]["value"]
    return {"topic": setup["topic"], "partition": setup["partition"]}


def replicas_of(edit: Edit) -> Sequence[str]:
    """Return the names of the replicas."""
    replicas: Sequence[str] = edit.lines[0]["value"]["replicas"]
    return replicas


def leader_of(edit: Edit) -> str:
    """Return the last leader in ZooKeeper."""
    return str(edit.find(METADATA, STATE, nth=-1)["value"]["leader"])


def follower_of(edit: Edit) -> str:
    """Return the first replica that is not that leader."""
    return next(each for each in replicas_of(edit) if each != leader_of(edit))


def snapshots(edit: Edit) -> list[Line]:
    """Return the snapshot of each final log."""
    return [edit.snapshot(node) for node in replicas_of(edit)]


def acked(edit: Edit, name: str) -> Line:
    """Return the last acknowledgement of a group of records."""
    return edit.find(Source.CLIENT, "produce", type="ok", nth=-1, name=name)


def last_read(edit: Edit) -> Line:
    """Return the ok of the last read."""
    return edit.find(Source.CLIENT, "read", type="ok", nth=-1)


def delete_before(edit: Edit, offset: int, at: Line | None = None) -> Line:
    """Insert a client's deletion of all records before an offset, before a line or the last read; return it."""
    read = at or edit.find(Source.CLIENT, "read", type="invoke", nth=-1)
    ok = edit.insert(read, Source.CLIENT, "delete-records", "client-98", "ok", before=True, **place(edit))
    asked = edit.insert(ok, Source.CLIENT, "delete-records", "client-98", "invoke", before=True, **place(edit))
    edit.change(asked, before=offset)
    edit.change(ok, before=offset, low_watermark=offset)
    return ok


# --- what clients do ---------------------------------------------------------------------------------------------
def read_again(edit: Edit, **value: Any) -> Line:
    """Insert a second read of another client after the last one; return its ok."""
    read = last_read(edit)
    asked = edit.insert(read, Source.CLIENT, "read", "client-99", "invoke", **place(edit))
    return edit.insert(asked, Source.CLIENT, "read", "client-99", "ok", **(read["value"] | value))


def resends(edit: Edit) -> Edit:
    """Make the client one that may send a record again."""
    return edit.change(edit.lines[0], sends_once=False)


def numbered(edit: Edit) -> Edit:
    """Make every client an idempotent one."""
    setup = edit.lines[0]
    return edit.change(setup, idempotent=list(setup["value"]["records"]))


def outcome(edit: Edit, name: str, type_: str, error: str) -> None:
    """Give every produce of the group another outcome than ok."""
    for line in edit.produces(name):
        if line["type"] == "ok":
            line["type"] = type_
            line["value"].pop("offset")
            line["value"]["error"] = error


def with_acks(edit: Edit, name: str, acks: int) -> None:
    """Let the group's records have asked for other acks."""
    for line in edit.produces(name):
        line["value"]["acks"] = acks


def sent_again(edit: Edit, name: str, outcome: str, error: str) -> None:
    """Let a second client send the group's records, after the first, with an outcome without an offset."""
    last = edit.produces(name)[-1]
    for line in [line for line in edit.produces(name) if line["type"] == "invoke"]:
        asked = edit.again(line, after=last)
        asked["process"] = "client-99"
        last = edit.again(asked, error=error)
        last["type"] = outcome


def not_healed(edit: Edit) -> None:
    """Let the runner have waited for the cluster to be whole, in vain."""
    healed = edit.find(Source.RUNNER, "healed")
    healed["type"] = "fail"
    healed["value"] = {"missing": "a replica is behind", "waited": True}

"""Groups that acknowledged records, and of which no member has a file of the log in the end."""

from __future__ import annotations

from typing import Final

from harness.model import Kind
from tests.checkers.plants.changes import Change, each_of
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.quorum import FIVE, GROUP, hit, on_disk, power, replicas, twin


def without(nodes: str = "", *, unseen: str = "") -> Change:
    """Return a change in which these nodes, or all, have no log at the end; the unseen were not looked at."""

    def change(edit: Edit) -> None:
        for node in nodes or replicas(edit):
            snapshot = edit.snapshot(node)
            place = {name: snapshot["value"][name] for name in ("topic", "partition")}
            why = "no answer" if node in unseen else "no log directory"
            edit.drop(*edit.batches(node))
            snapshot["type"] = "fail"
            snapshot["value"] = {**place, "problems": [why], "absent": node not in unseen}

    return change


LOST: Final = Kind.LOST
NOWHERE = [
    *twin("nowhere-by-no-fault", GROUP, without(), without(unseen="C"), LOST, lawful=(Kind.UNREADABLE,)),
    *twin(
        "nowhere-by-kills",
        GROUP,
        each_of(hit("kill", "ABC", "down"), without()),
        each_of(hit("lose-disk", "BC", "disk-lost"), without()),
        LOST,
        lawful=(Kind.PERMITTED,),
    ),
    *twin(
        "nowhere-though-on-disk",
        GROUP,
        each_of(on_disk, power("ABC"), without()),
        each_of(on_disk, power("ABC"), without("AC")),
        LOST,
        lawful=(Kind.UNREADABLE,),
    ),
    *twin(
        "nowhere-by-no-fault-of-five",
        FIVE,
        without(),
        each_of(hit("lose-disk", "E", "disk-lost"), without()),
        LOST,
        lawful=(Kind.PERMITTED,),
    ),
]

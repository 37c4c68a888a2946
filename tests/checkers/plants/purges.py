"""Groups of which a majority acknowledged that records are deleted, and that have them again."""

from __future__ import annotations

from typing import Final

from harness.model import Kind
from tests.checkers.plants.changes import Change, each_of, last_read
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.quorum import GROUP, LAST, answer, hit, on_disk, power, question, replicas, twin

_START: Final = 4


def _deleted(unless: str = "", *, after: str = LAST) -> Change:
    """Return a change in which all before offset 4 is deleted, but that these nodes have it in the end."""

    def change(edit: Edit) -> None:
        asked = edit.again(question(edit, after), after=answer(edit, after))
        for line, more in ((asked, {}), (edit.again(asked, after=asked), {"low_watermark": _START})):
            line["f"], line["process"] = "delete-records", "client-8"
            line["value"] = {"topic": line["value"]["topic"], "partition": 0, "before": _START, **more}
        edit.lines[edit.at(asked) + 1]["type"] = "ok"
        for node in sorted({*replicas(edit)} - {*unless}):
            snapshot = edit.snapshot(node)
            epochs = [[epoch, max(start, _START)] for epoch, start in snapshot["value"]["epochs"] or ()]
            for offset in range(1, _START):
                edit.drop_batch(node, offset)
            edit.change(snapshot, log_start_offset=_START, epochs=epochs)
        read = last_read(edit)["value"]
        if "B" not in unless:
            read["records"] = [each for each in read["records"] if each[0] >= _START]

    return change


UNDELETED: Final = Kind.UNDELETED
PURGES = [
    *twin("purge-undone-at-one", GROUP, _deleted("C"), each_of(power("AC"), _deleted("C")), UNDELETED),
    *twin("purge-undone-at-all", GROUP, _deleted("ABC"), each_of(power("BC"), _deleted("ABC")), UNDELETED),
    *twin(
        "purge-undone-on-disk",
        GROUP,
        each_of(on_disk, power("ABC"), _deleted("A")),
        each_of(on_disk, power("ABC"), _deleted()),
        UNDELETED,
    ),
    *twin(
        "purge-undone-by-kills",
        GROUP,
        each_of(hit("kill", "ABC", "down"), _deleted("AB")),
        each_of(hit("lose-disk", "BC", "disk-lost"), _deleted("AB")),
        UNDELETED,
    ),
]

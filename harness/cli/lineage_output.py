"""
Print what `fencepost lineage` finds, partition by partition: paragraphs for people, one JSON object for scripts.

Names and texts of the disks are printed with everything escaped that a terminal could take for a command. The text
is short where there is much to say; the JSON has all of it, but a record's value only to VALUE_CHARACTERS_MAX.

docs/lineage.md describes the keys of the JSON. A key that changes its meaning or goes raises FORMAT_VERSION.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.text import Text

from harness.logs.compare import VALUE_CHARACTERS_MAX, Comparison, Replica
from harness.logs.lawful import Law, Ruling, of_behind, of_difference, of_note
from harness.logs.lineage import Difference, DifferenceKind, Holding
from harness.model import EXIT_OF_VERDICT, Verdict

FORMAT: Final = "fencepost-lineage"
FORMAT_VERSION: Final = 1
# The segments, entries, differences and notes that the text shows of each replica or partition.
_LISTED_MAX: Final = 50
_SAYS: Final = {
    DifferenceKind.CONTENT: "other records",
    DifferenceKind.HOLE: "records here, a hole there",
    DifferenceKind.EPOCH: "the same records under another leader epoch",
}
_LAWS: Final = {
    Law.LAWFUL: "lawful",
    Law.FORBIDDEN: "no protocol allows this",
    Law.UNKNOWN: "not known whether it is lawful",
}
T = TypeVar("T")


class _Counts:
    """How many partitions have which verdict, and how many were held by one directory alone."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self.alone = 0
        self.lawful = 0

    def add(self, found: Comparison) -> None:
        self.verdicts.append(found.verdict)
        self.lawful += found.verdict is Verdict.INVALID and found.law is Law.LAWFUL
        self.alone += len(found.replicas) == 1


class JsonOutput:
    """One JSON object on stdout, written partition by partition."""

    def __init__(self) -> None:
        """Begin the object."""
        self._counts = _Counts()
        print(f'{{\n "format": "{FORMAT}",\n "version": {FORMAT_VERSION},\n "partitions": [', end="")

    def add(self, found: Comparison) -> None:
        """Write a partition."""
        comma = "," if self._counts.verdicts else ""
        self._counts.add(found)
        print(f"{comma}\n{json.dumps(_to_dict(found), indent=1)}", end="")

    def end(self, verdict: Verdict, unreadable: Mapping[str, str]) -> None:
        """Write what concerns all partitions, and end the object."""
        verdicts = self._counts.verdicts
        rest = {
            "unreadable": unreadable,
            "counts": {
                "partitions": len(verdicts),
                "alone": self._counts.alone,
                "invalid": verdicts.count(Verdict.INVALID),
                "lawful": self._counts.lawful,
                "unknown": verdicts.count(Verdict.UNKNOWN),
            },
            "verdict": verdict.name.lower(),
            "exit_code": EXIT_OF_VERDICT[verdict],
        }
        print(f"\n ],{json.dumps(rest, indent=1).removeprefix('{')}")


class TextOutput:
    """A paragraph for each partition, and one line at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._counts = _Counts()

    def add(self, found: Comparison) -> None:
        """Print a partition's paragraph."""
        self._counts.add(found)
        for line in _lines(found):
            self._print(line)

    def end(self, verdict: Verdict, unreadable: Mapping[str, str]) -> None:
        """Print the directories that could not be read, and the summary."""
        for label, why in unreadable.items():
            self._print(Text(f"{label}: not read: {why}", style="yellow"))
        self._print(_summary(self._counts, verdict, len(unreadable)))

    def _print(self, line: Text) -> None:
        if self._console.is_terminal:
            self._console.print(line)
        else:
            # Without styles to write, rich takes most of the time of a comparison of many small partitions.
            print(line.plain)


def _to_dict(found: Comparison) -> dict[str, Any]:
    """Return plain JSON data: everything except the records."""
    marks = found.high_watermarks
    return {
        "partition": found.name,
        "verdict": found.verdict.name.lower(),
        "incomparable": found.incomparable,
        "replicas": {label: _replica_to_dict(replica) for label, replica in found.replicas.items()},
        "law": found.law,
        "differences": [
            {**asdict(each), "rulings": [asdict(ruling) for ruling in of_difference(each, marks)]}
            for each in found.differences
        ],
        "forks": [asdict(fork) for fork in found.forks],
        "behind": [{**asdict(each), **_law(of_behind(each, marks))} for each in found.behind],
    }


def _law(ruling: Ruling) -> dict[str, str]:
    return {"law": ruling.law, "why": ruling.why}


def _replica_to_dict(replica: Replica) -> dict[str, Any]:
    log = replica.log
    return {
        "topic_id": log.topic_id,
        "log_start_offset": log.log_start_offset,
        "log_end_offset": log.log_end_offset,
        "high_watermark": log.high_watermark,
        "cleaned_to": log.cleaned_to,
        "lineage": [asdict(segment) for segment in replica.lineage],
        "epochs": log.epochs,
        "problems": log.problems,
        "unread": log.unread,
        "remarks": log.remarks,
        "notes": [
            {"kind": note.kind, "first": note.first, "end": note.end, "text": note.text, **_law(of_note(note))}
            for note in replica.notes
        ],
    }


def _lines(found: Comparison) -> Iterator[Text]:
    """Yield the partition's paragraph as Text: values and names come from disks and must not be read as markup."""
    marks = found.high_watermarks
    yield Text(found.name, style="bold")
    for label, replica in found.replicas.items():
        yield Text(f"  {label}: {_log_line(replica)}")
    if found.incomparable:
        yield Text(f"  not compared: {found.incomparable}", style="yellow")
    for difference in found.differences[:_LISTED_MAX]:
        yield Text(f"  {_span(difference.first, difference.end)} differ: {_SAYS[difference.kind]}", style="red")
        for holding in difference.holdings:
            yield Text(f"    {holding.replica}: {_holding(holding, difference)}")
            if _look_alike(difference):
                yield from (Text(f"      {about}") for about in holding.about)
        yield from (_ruled(ruling) for ruling in of_difference(difference, marks))
    yield from _more("differences", found.differences)
    for fork in found.forks[:_LISTED_MAX]:
        branches = " | ".join(", ".join(names) for names in fork.branches)
        yield Text(f"  histories fork at offset {fork.offset}: {branches}", style="red")
    yield from _more("forks", found.forks)
    for each in found.behind:
        ends = f"it ends at {each.log_end_offset}, another at {each.furthest}"
        yield Text(f"  {each.replica} is behind: {ends}; lawful: {of_behind(each, marks).why}")
    for label, replica in found.replicas.items():
        for note in replica.notes[:_LISTED_MAX]:
            kind = "note" if note.kind is None else note.kind.value
            ruling = of_note(note)
            law = f"; {_LAWS[ruling.law]}: {ruling.why}" if note.kind is not None or note.after_crash else ""
            text = f"  {label}: {kind} at {_span(note.first, note.end)}: {note.text}{law}"
            yield Text(text, style="" if note.kind is None else "red")
        yield from _more(f"notes about {label}", replica.notes)
        for problem in replica.log.problems[:_LISTED_MAX]:
            yield Text(f"  {label}: not read: {problem}", style="yellow")
        yield from _more(f"unreadable places of {label}", replica.log.problems)


def _look_alike(difference: Difference) -> bool:
    """Return True if records that are not equal would be printed as if they were: their values begin alike."""
    if difference.kind is not DifferenceKind.CONTENT:
        return False
    shown = {holding.group: holding.sample for holding in difference.holdings if holding.group is not None}
    return len(set(shown.values())) < len(shown)


def _ruled(ruling: Ruling) -> Text:
    style = {Law.FORBIDDEN: "red", Law.UNKNOWN: "yellow", Law.LAWFUL: ""}[ruling.law]
    return Text(f"    {_span(ruling.first, ruling.end)}: {_LAWS[ruling.law]}: {ruling.why}", style=style)


def _more(what: str, found: Sequence[T]) -> Iterator[Text]:
    if len(found) > _LISTED_MAX:
        yield Text(f"  and {len(found) - _LISTED_MAX} more {what}, which --json lists", style="yellow")


def _log_line(replica: Replica) -> str:
    log = replica.log
    pieces = [
        f"{'hole' if s.epoch is None else 'no epoch' if s.epoch < 0 else f'epoch {s.epoch}'} [{s.start}, {s.end})"
        for s in replica.lineage[:_LISTED_MAX]
    ]
    entries = log.epochs or ()
    written = " ".join(f"{epoch}@{start}" for epoch, start in entries[:_LISTED_MAX]) or "empty"
    watermark = "unknown" if log.high_watermark is None else log.high_watermark
    return (
        f"{' '.join(pieces) or 'empty'}{_and_more(replica.lineage)}; "
        f"log [{log.log_start_offset}, {log.log_end_offset}), high watermark {watermark}, "
        f"epoch checkpoint {'none' if log.epochs is None else written}{_and_more(entries)}"
    )


def _and_more(found: Sequence[T]) -> str:
    return f" and {len(found) - _LISTED_MAX} more" if len(found) > _LISTED_MAX else ""


def _holding(holding: Holding, difference: Difference) -> str:
    if holding.group is None:
        return "nothing, a hole"
    epochs = ", ".join("none" if epoch < 0 else str(epoch) for epoch in holding.epochs[:_LISTED_MAX])
    values = [
        "null" if value is None else repr(value[:VALUE_CHARACTERS_MAX]) + "…" * (len(value) > VALUE_CHARACTERS_MAX)
        for value in holding.sample
    ]
    more = ", …" if difference.end - difference.first > len(values) else ""
    return f"epoch {epochs}: {', '.join(values)}{more}"


def _span(first: int, end: int) -> str:
    return f"offset {first}" if end - first <= 1 else f"offsets [{first}, {end})"


def _summary(counts: _Counts, verdict: Verdict, unreadable: int) -> Text:
    """Return one line: the number of faulty partitions, else of unreadable ones, else of those compared."""
    verdicts = counts.verdicts
    invalid, unknown = verdicts.count(Verdict.INVALID), verdicts.count(Verdict.UNKNOWN)
    total = f"of {len(verdicts)} partitions"
    if invalid:
        lawful = f"; in {counts.lawful} of them all of it is lawful" if counts.lawful else ""
        return Text(f"{invalid} {total} disagree or contradict themselves{lawful}", style="bold red")
    if verdict is Verdict.UNKNOWN:
        directories = f"; {unreadable} directories could not be read" if unreadable else ""
        text = f"{unknown} {total} could not be read whole; nothing that was read differs{directories}"
        return Text(text, style="yellow")
    single = f"; {counts.alone} checked alone, held by one directory" if counts.alone else ""
    return Text(f"no disagreement: {len(verdicts) - counts.alone} {total} compared{single}", style="bold green")

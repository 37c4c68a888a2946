"""
`fencepost lineage DIR…`: compare the log directories of one cluster's brokers, read-only.

Each DIR is a partition's directory (`orders-0/`) or a data directory with several partitions. Directories are
compared partition by partition; with one DIR, each replica is only checked for contradictions within itself.

Exit codes: 0 equal, or one is only behind; 2 a DIR is not a log directory; 3 something could not be read, and the
rest does not differ; 4 directories disagree, or a replica contradicts itself.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from harness.logdir.graph import Fork, fork_points, lineage_graph
from harness.logdir.lineage import Behind, Difference, DifferenceKind, Holding, behind, differences, lineage
from harness.logdir.scan import ReplicaLog, find_partitions, name_of, scan_partition
from harness.logdir.soundness import Note, notes
from harness.model import EXIT_OF_VERDICT, VERDICT_OF, Kind, UsageError, Verdict

_VALUE_CHARS_MAX: Final = 60
_SAYS: Final = {
    DifferenceKind.CONTENT: "other records",
    DifferenceKind.HOLE: "records here, a hole there",
    DifferenceKind.EPOCH: "the same records under another leader epoch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of one partition; logs and notes are by directory, as typed."""

    name: str
    logs: dict[str, ReplicaLog]
    differences: tuple[Difference, ...]
    behind: tuple[Behind, ...]
    forks: tuple[Fork, ...]
    notes: dict[str, tuple[Note, ...]]
    incomparable: str = ""

    @property
    def verdict(self) -> Verdict:
        """Invalid if directories disagree or one contradicts itself; else unknown if one was not wholly read."""
        kinds = [note.kind for found in self.notes.values() for note in found if note.kind is not None]
        kinds += [Kind.DIVERGED for _ in self.differences]
        kinds += [Kind.UNREADABLE for log in self.logs.values() if log.problems]
        kinds += [Kind.UNREADABLE] if self.incomparable else []
        return Verdict.merge(VERDICT_OF[kind] for kind in kinds)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "directories",
        metavar="DIR",
        nargs="+",
        type=Path,
        help="a partition's directory, or a broker's data directory; one for each broker",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for machines")


def run(args: argparse.Namespace) -> int:
    """
    Compare the directories, print the findings, return the exit code.

    Raises:
        UsageError: a path is not a log directory, or no partition is in two of several directories.
    """
    places = _places(args.directories)
    compared = (_compare(name, directories) for name, directories in places.items())
    if args.json:
        found = list(compared)
        verdict = Verdict.merge(each.verdict for each in found)
        body = {"verdict": verdict.name.lower(), "partitions": [_to_dict(each) for each in found]}
        print(json.dumps(body, indent=1))
        return EXIT_OF_VERDICT[verdict]
    console = Console(highlight=False, soft_wrap=True)
    verdicts: list[Verdict] = []
    for each in compared:
        verdicts.append(each.verdict)
        for line in _lines(each):
            console.print(line)
    alone = sum(len(held) == 1 for held in places.values())
    console.print(_summary(verdicts, alone))
    return EXIT_OF_VERDICT[Verdict.merge(verdicts)]


def _places(directories: list[Path]) -> dict[str, dict[str, Path]]:
    """Return partition -> directory as typed -> path of that partition in it, sorted by partition."""
    places: dict[tuple[str, int], dict[str, Path]] = {}
    for directory in directories:
        found = find_partitions(directory)
        if not found:
            raise UsageError(
                f"{directory}: no Kafka log directory; expected segments (00000000000000000000.log), "
                "or directories named TOPIC-PARTITION that have them"
            )
        for path in found:
            held = places.setdefault(name_of(path), {})
            if str(directory) in held:
                raise UsageError(f"{directory}: named twice; expected a directory for each broker")
            held[str(directory)] = path
    if len(directories) > 1 and all(len(held) == 1 for held in places.values()):
        raise UsageError("no partition is in two of these directories: there is nothing to compare")
    return {f"{topic}-{partition}": held for (topic, partition), held in sorted(places.items())}


def _compare(name: str, directories: dict[str, Path]) -> Comparison:
    logs = {label: scan_partition(path) for label, path in directories.items()}
    ids = {label: log.topic_id for label, log in logs.items() if log.topic_id is not None}
    # Two topics with one name, one of them deleted: they have no records in common.
    apart = len(set(ids.values())) > 1
    compared = {} if apart else logs
    named = ", ".join(f"{label} has {topic_id}" for label, topic_id in ids.items())
    return Comparison(
        name=name,
        logs=logs,
        differences=differences(compared),
        behind=behind(compared),
        forks=fork_points(lineage_graph(compared)),
        notes={label: notes(log) for label, log in logs.items()},
        incomparable=f"these are different topics of one name, by their topic ids: {named}" if apart else "",
    )


def _to_dict(found: Comparison) -> dict[str, Any]:
    """Return plain JSON data: everything except the records."""
    return {
        "partition": found.name,
        "verdict": found.verdict.name.lower(),
        "incomparable": found.incomparable,
        "replicas": {
            label: {
                "topic_id": log.topic_id,
                "log_start_offset": log.log_start_offset,
                "log_end_offset": log.log_end_offset,
                "high_watermark": log.high_watermark,
                "cleaned_to": log.cleaned_to,
                "lineage": [asdict(segment) for segment in lineage(log)],
                "epochs": log.epochs,
                "problems": log.problems,
                "unread": log.unread,
                "remarks": log.remarks,
                "notes": [asdict(note) for note in found.notes[label]],
            }
            for label, log in found.logs.items()
        },
        "differences": [asdict(difference) for difference in found.differences],
        "forks": [asdict(fork) for fork in found.forks],
        "behind": [asdict(each) for each in found.behind],
    }


def _lines(found: Comparison) -> Iterator[Text]:
    """Yield the partition's paragraph as Text: values and names come from disks and must not be read as markup."""
    yield Text(found.name, style="bold")
    for label, log in found.logs.items():
        yield Text(f"  {label}: {_log_line(log)}")
    if found.incomparable:
        yield Text(f"  not compared: {found.incomparable}", style="yellow")
    for difference in found.differences:
        yield Text(f"  {_span(difference.first, difference.end)} differ: {_SAYS[difference.kind]}", style="red")
        for holding in difference.holdings:
            yield Text(f"    {holding.replica}: {_holding(holding, difference)}")
    for fork in found.forks:
        branches = " | ".join(", ".join(names) for names in fork.branches)
        yield Text(f"  histories fork at offset {fork.offset}: {branches}", style="red")
    for each in found.behind:
        yield Text(f"  {each.replica} is behind: it ends at {each.log_end_offset}, another at {each.furthest}")
    for label, log in found.logs.items():
        for note in found.notes[label]:
            kind = "note" if note.kind is None else note.kind.value
            text = f"  {label}: {kind} at {_span(note.first, note.end)}: {note.text}"
            yield Text(text, style="" if note.kind is None else "red")
        for problem in log.problems:
            yield Text(f"  {label}: not read: {problem}", style="yellow")


def _log_line(log: ReplicaLog) -> str:
    pieces = [
        f"{'hole' if s.epoch is None else 'no epoch' if s.epoch < 0 else f'epoch {s.epoch}'} [{s.start}, {s.end})"
        for s in lineage(log)
    ]
    written = "none" if log.epochs is None else " ".join(f"{epoch}@{start}" for epoch, start in log.epochs)
    watermark = "unknown" if log.high_watermark is None else log.high_watermark
    return (
        f"{' '.join(pieces) or 'empty'}; log [{log.log_start_offset}, {log.log_end_offset}), "
        f"high watermark {watermark}, epoch checkpoint {written or 'empty'}"
    )


def _holding(holding: Holding, difference: Difference) -> str:
    if holding.group is None:
        return "nothing, a hole"
    epochs = ", ".join("none" if epoch < 0 else str(epoch) for epoch in holding.epochs)
    values = [
        "null" if value is None else repr(value[:_VALUE_CHARS_MAX]) + "…" * (len(value) > _VALUE_CHARS_MAX)
        for value in holding.sample
    ]
    more = ", …" if difference.end - difference.first > len(values) else ""
    return f"epoch {epochs}: {', '.join(values)}{more}"


def _span(first: int, end: int) -> str:
    return f"offset {first}" if end - first <= 1 else f"offsets [{first}, {end})"


def _summary(verdicts: list[Verdict], alone: int) -> Text:
    """Return one line: the number of faulty partitions, else of unreadable ones, else of those compared."""
    invalid, unknown = verdicts.count(Verdict.INVALID), verdicts.count(Verdict.UNKNOWN)
    total = f"of {len(verdicts)} partitions"
    if invalid:
        return Text(f"{invalid} {total} disagree or contradict themselves", style="bold red")
    if unknown:
        return Text(f"{unknown} {total} could not be read whole; nothing that was read differs", style="yellow")
    single = f"; {alone} checked alone, held by one directory" if alone else ""
    return Text(f"no disagreement: {len(verdicts) - alone} {total} compared{single}", style="bold green")

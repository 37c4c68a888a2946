"""
`fencepost lineage DIR…`: compare the logs of one cluster's nodes, read-only, as their target's reader finds them.

Each DIR is a node's data directory, or the directory of one partition (`orders-0/`) if a target has such. They are
compared partition by partition; with one DIR, each replica is only checked for contradictions within itself.

The directories may be a stranger's: only regular files are opened, no link below a DIR is followed, and memory is
bounded whatever they hold. What cannot be read is *unreadable*, and the rest is read.

Exit codes: 0 equal, or one is only behind; 2 a DIR is not a log directory; 3 something could not be read, and the
rest does not differ; 4 directories disagree, or a replica contradicts itself.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from rich.cells import cell_len, set_cell_size

from harness.beneath import Folder
from harness.cli.lineage_output import JsonOutput, TextOutput
from harness.logs.asked import ReaderError
from harness.logs.compare import compare
from harness.logs.guard import Guard
from harness.logs.names import PATH_CHARACTERS_MAX, shown
from harness.logs.stream import Open
from harness.model import EXIT_OF_VERDICT, UsageError, Verdict
from harness.report.console import console as make_console
from harness.suite.options import configure_targets
from harness.target.found import target as target_of
from harness.target.logs import NodeFiles, ReplicaFolders
from harness.target.target import Target
from targets import DEFAULT_TARGET

_PROGRESS_S: Final = 0.1
# Of a terminal that does not say how wide it is.
_COLUMNS: Final = 80
_WRONG_PLACE: Final = (FileNotFoundError, NotADirectoryError)


@dataclass(slots=True)
class _Places:
    """Where the replicas are: partition -> directory as printed -> how it is read; what cannot be listed."""

    partitions: dict[tuple[str, int], dict[str, Open]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "directories",
        metavar="DIR",
        nargs="+",
        type=Path,
        help="a partition's directory, or a broker's data directory; one for each broker; what cannot be read in "
        "it is unreadable (exit code 3), and the rest is compared",
    )
    parser.add_argument(
        "--target",
        default=DEFAULT_TARGET,
        metavar="NAME",
        help=f"the system that wrote the logs; default {DEFAULT_TARGET}, whose logs are as Apache Kafka's",
    )
    configure_targets(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object, for scripts: its keys are in docs/lineage.md"
    )


def run(args: argparse.Namespace) -> int:
    """
    Compare the directories, print the findings, return the exit code.

    Raises:
        UsageError: A path is not a log directory, or no partition is in two of several directories.
    """
    with ExitStack() as opened:
        target = target_of(args.target)
        guard = Guard(target.name)
        places = _places(args.directories, target, guard, opened)
        output = JsonOutput() if args.json else TextOutput(make_console(highlight=False, soft_wrap=True))
        verdicts = [Verdict.UNKNOWN for _ in places.unreadable]
        for name, held in _with_progress(places.partitions):
            found = guard.run(partial(compare, name, held))
            verdicts.append(found.verdict)
            output.add(found)
        verdict = Verdict.merge(verdicts)
        output.end(verdict, places.unreadable)
    return EXIT_OF_VERDICT[verdict]


def _places(directories: list[Path], target: Target, guard: Guard, opened: ExitStack) -> _Places:
    """Return where the replicas of each partition are; each data directory is open until the stack is closed."""
    found = _Places()
    nodes: dict[Path, NodeFiles] = {}
    labels: set[str] = set()
    for directory in directories:
        label = shown(str(directory), PATH_CHARACTERS_MAX)
        if label in labels:
            raise UsageError(f"{label}: named twice; expected a directory for each broker")
        labels.add(label)
        try:
            replicas = _replicas(target, guard, nodes, opened, Path(os.path.realpath(directory)))
        except _WRONG_PLACE as error:
            raise UsageError(f"{label}: {error.strerror}; expected a directory that can be listed") from error
        except OSError as error:
            found.unreadable[label] = str(error.strerror)
            continue
        except ReaderError as error:
            found.unreadable[label] = str(error)
            continue
        if not replicas:
            raise UsageError(f"{label}: no logs of {target.name}; expected {target.logs.expected}")
        for place, opening in replicas.items():
            found.partitions.setdefault(place, {})[label] = opening
    if len(directories) > 1 and not found.unreadable and all(len(held) == 1 for held in found.partitions.values()):
        raise UsageError("no partition is in two of these directories: there is nothing to compare")
    return found


def _replicas(
    target: Target, guard: Guard, nodes: dict[Path, NodeFiles], opened: ExitStack, directory: Path
) -> Mapping[tuple[str, int], Open]:
    """
    Return how each replica in a directory is read.

    Raises:
        ReaderError: The target's reader does what none may do.
        OSError: The directory cannot be listed.
    """
    logs = target.logs
    alone: tuple[str, int] | None = None
    if isinstance(logs, ReplicaFolders):
        with Folder.at(directory) as folder:
            alone = guard.run(lambda: guard.place(partial(logs.replica_of, folder)))
    if alone is not None:
        directory = directory.parent
    if directory not in nodes:
        nodes[directory] = NodeFiles(folder=opened.enter_context(Folder.at(directory)))
    node = nodes[directory]
    listed = partial(guard.partitions, partial(logs.partitions, node))
    places = guard.run(listed) if alone is None else [alone]
    return {place: guard.opening(partial(logs.reading, node, *place), *place, directory) for place in places}


def _with_progress(
    partitions: Mapping[tuple[str, int], dict[str, Open]],
) -> Iterator[tuple[str, dict[str, Open]]]:
    """Yield each partition's name and replicas, sorted, and show on a terminal's stderr how many are done."""
    line = _ProgressLine(sys.stderr)
    for done, ((topic, partition), held) in enumerate(sorted(partitions.items())):
        name = shown(f"{topic}-{partition}")
        line.show(f"{done} of {len(partitions)} partitions compared; now {name}")
        yield name, held
        line.clear()


class _ProgressLine:
    """One line of a terminal that is written again and again; nothing on anything else."""

    def __init__(self, file: TextIO | None) -> None:
        dumb = os.environ.get("TERM", "") in {"", "dumb"}
        self._file = file if file is not None and file.isatty() and not dumb else None
        self._width = 0
        self._shown_s = 0.0

    def show(self, text: str) -> None:
        """Write the text in place of the last one, unless that was written just now."""
        now = time.monotonic()
        if self._file is None or now - self._shown_s < _PROGRESS_S:
            return
        self.clear()
        self._shown_s = now
        columns = os.get_terminal_size(self._file.fileno()).columns or _COLUMNS
        # Some characters take two columns; a line that wraps could not be removed.
        text = set_cell_size(text, min(cell_len(text), columns - 1))
        self._write(text)
        self._width = cell_len(text)

    def clear(self) -> None:
        """Remove the text, so that what follows is not printed behind it."""
        if self._width:
            self._write(f"\r{' ' * self._width}\r")
            self._width = 0

    def _write(self, text: str) -> None:
        assert self._file is not None, "only a terminal is written to"
        print(text, end="", file=self._file, flush=True)

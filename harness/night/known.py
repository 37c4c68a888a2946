"""
The seeds and schedules that ever failed, kept for all nights: each is played again in every later night.

`known.jsonl` has a line for each, fsynced, and `NAME.txt` beside it is its schedule. The schedule is what is
played: a seed draws another one as soon as something new can be drawn.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from harness.input_file import open_file
from harness.model import UsageError
from harness.scenario.text import text_of
from harness.search.random_runs import RandomRuns

LINES: Final = "known.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """
    One seed that failed.

    Attributes:
        name: the name of its schedule's file, without `.txt`.
        target: the name of one.
        variant: the protocol, mutant or release.
        night: the night in which it failed first.
        kind: what was found then.
    """

    name: str
    host: str
    target: str
    variant: str
    alike: bool
    seed: int
    night: str
    kind: str

    def runs(self, folder: Path, power_tier: str | None) -> RandomRuns:
        """Return the runs of its schedule, which has its clients in it."""
        return RandomRuns(
            target=self.target,
            variant=self.variant,
            host=self.host,
            alike=self.alike,
            schedule=folder / f"{self.name}.txt",
            power_tier=power_tier,
        )

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> Known:
        """Read what `asdict` returned; raise UsageError for anything else."""
        kinds = {each.name: {"str": str, "int": int, "bool": bool}[str(each.type)] for each in fields(Known)}
        if raw.keys() != kinds.keys() or not all(isinstance(raw[name], kind) for name, kind in kinds.items()):
            raise UsageError(f"{raw!r:.200}; expected the keys {', '.join(kinds)}")
        known = Known(**raw)
        if Path(known.name).name != known.name:
            raise UsageError(f"name {known.name!r}; expected that of a file beside {LINES}")
        return known


@dataclass(frozen=True, slots=True)
class KnownSeeds:
    """All seeds that ever failed, in a folder."""

    folder: Path

    def read(self) -> tuple[Known, ...]:
        """
        Return them in the order in which they failed; a last line that was cut short is none.

        Raises:
            UsageError: a line is none of ours; it has the file and the line.
        """
        path = self.folder / LINES
        if not os.path.lexists(path):
            return ()
        with open_file(path, "the seeds that failed in earlier nights") as file:
            data = file.read()
        found: dict[str, Known] = {}
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            try:
                known = Known.from_dict(json.loads(line))
            except (ValueError, TypeError, AttributeError, RecursionError, UsageError) as error:
                raise UsageError(
                    f"{path}:{number}: {error}; expected a seed that failed, or no such line"
                ) from error
            found.setdefault(known.name, known)
        return tuple(found.values())

    def add(self, runs: RandomRuns, seed: int, *, night: str, kind: str) -> Known:
        """Keep a seed that failed, with its schedule; one that is there already is left as it is."""
        known = Known(
            name=_name(runs, seed),
            host=runs.host,
            target=runs.target,
            variant="+".join((runs.variant, *runs.changes)),
            alike=runs.alike,
            seed=seed,
            night=night,
            kind=kind,
        )
        if any(each.name == known.name for each in self.read()):
            return known
        self.folder.mkdir(parents=True, exist_ok=True)
        _write_durably(self.folder / f"{known.name}.txt", text_of(runs.spec(seed).scenario))
        _append_durably(self.folder / LINES, json.dumps(asdict(known)))
        return known


def chosen(
    known: Sequence[Known], *, hosts: Collection[str], targets: Collection[tuple[str, str]], most: int
) -> tuple[tuple[Known, ...], int]:
    """
    Return the seeds that a night plays again, the newest of each host first, and how many it leaves out.

    A seed of a target that the night does not play is not its business.
    """
    found: list[Known] = []
    left = 0
    for host in hosts:
        mine = [each for each in known if each.host == host and (each.target, each.variant) in targets]
        found += mine[::-1][:most]
        left += max(0, len(mine) - most)
    return tuple(found), left


def _name(runs: RandomRuns, seed: int) -> str:
    """Return a name that two runs share only if they play the same."""
    words = [runs.host, runs.target, runs.variant, *runs.changes, runs.workload, f"seed-{seed}"]
    words += ["narrow"] if runs.narrow else []
    words += [] if "all" in runs.nemeses else runs.nemeses
    return re.sub(r"[^A-Za-z0-9._+=-]+", "_", "-".join(filter(None, words)))


def _write_durably(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _append_durably(path: Path, line: str) -> None:
    with path.open("ab+") as file:
        # A night that was killed while it wrote may have left half a line.
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        file.write(f"{line}\n".encode())
        file.flush()
        os.fsync(file.fileno())

"""What was planted into a made run, kept beside its tables, and how what was found is compared with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.made.plants import PLANTS, Plant
from harness.model import Anomaly, Kind

FILE: Final = "truth.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """
    One plant that is there.

    Attributes:
        offset: of the record that was changed; None if the plant found no record to change.
    """

    name: str
    partition: int
    offset: int | None

    @property
    def kinds(self) -> frozenset[Kind]:
        """What must be found."""
        return PLANTS[self.name].kinds


def write_truth(folder: Path, truth: Sequence[tuple[Plant, int | None]]) -> None:
    """Write what was planted to a run's folder."""
    rows = [{"name": plant.name, "partition": plant.partition, "offset": offset} for plant, offset in truth]
    (folder / FILE).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def read_truth(folder: Path) -> list[Planted]:
    """Read what `write_truth` wrote."""
    return [Planted(**row) for row in json.loads((folder / FILE).read_text(encoding="utf-8"))]


def wrong(truth: Sequence[Planted], found: Sequence[Anomaly], batch: int) -> list[str]:
    """
    Return a line for each plant that was not found, and for each finding that was not planted.

    Args:
        truth: what was planted.
        found: what a check found.
        batch: the records of a batch; a changed record may spoil the batches around it.
    """
    found_at = [(each, _around(each, batch)) for each in found]
    lines = []
    for plant in truth:
        for kind in sorted(plant.kinds):
            if not any(_fits(plant, kind, each, spans) for each, spans in found_at):
                where = f"partition {plant.partition} was not found at offset {plant.offset}"
                lines.append(f"{kind} of {where} ({plant.name})")
    for each, spans in found_at:
        if not all(any(_fits(plant, each.kind, each, [span]) for plant in truth) for span in spans):
            lines.append(f"{each.kind} of partition {each.partition} was not planted: {each.sentence:.200}")
    return lines


def _around(anomaly: Anomaly, batch: int) -> list[tuple[int, int]]:
    """Return the ranges of an anomaly, two batches wider at both ends; all offsets if it is about none."""
    return [(first - 2 * batch, end + 2 * batch) for first, end in anomaly.ranges] or [(0, 2**63)]


def _fits(plant: Planted, kind: Kind, anomaly: Anomaly, spans: Sequence[tuple[int, int]]) -> bool:
    """Return True if the anomaly is one of that kind, which is planted there."""
    if kind not in plant.kinds or (anomaly.partition, anomaly.kind) != (plant.partition, kind):
        return False
    return plant.offset is not None and any(first <= plant.offset < end for first, end in spans)

"""
Tables over nights, made with pandas from each night's JSON: findings, runs, availability, faults that bit.

Canaries are left out of all of them: they are broken on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from harness import limits
from harness.input_file import read_text
from harness.model import UsageError
from harness.night.schedule import Role

JSON: Final = "night.json"
# How many nights are compared, this one among them.
NIGHTS_MAX: Final = 14
VERDICTS: Final = ("invalid", "hang", "unknown")
Night = Mapping[str, Any]

_COLUMNS: Final = (
    "night",
    "host",
    "line",
    "runs",
    "windows",
    "available",
    "gap_s",
    "asked",
    "bit",
    "seconds",
    *VERDICTS,
)
_FAULTS: Final = ("night", "host", "kind", "asked", "bit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """
    The tables of some nights.

    Attributes:
        lines: a row for each line of each night.
        faults: a row for each kind of fault on each host in each night.
        nights: a row for each night, in order: findings by verdict, runs, availability, faults.
        hosts: a row for each night and host: runs, availability, faults.
    """

    lines: pd.DataFrame
    faults: pd.DataFrame
    nights: pd.DataFrame
    hosts: pd.DataFrame


def earlier_nights(folder: Path, before: str) -> tuple[list[Night], list[str]]:
    """
    Return the last nights that ended before this one, the oldest first, and what of them cannot be read.

    Args:
        folder: the folder of all nights.
        before: the name of this one.
    """
    found: list[Night] = []
    unread: list[str] = []
    names = sorted(path.parent.name for path in folder.glob(f"*/{JSON}") if not path.parent.is_symlink())
    for name in reversed([name for name in names if name < before]):
        if len(found) == NIGHTS_MAX - 1:
            break
        path = folder / name / JSON
        try:
            night = json.loads(read_text(path, "a night as data", limits.SUITE_BYTES_MAX))
            tables_of([night])
        except (UsageError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            unread.append(f"{path}: {error!s:.200}")
            continue
        found.append(night)
    return found[::-1], unread


def tables_of(nights: Sequence[Night]) -> Tables:
    """Return the tables of these nights, each as its JSON has it, the oldest first."""
    lines = pd.DataFrame([row for night in nights for row in _lines(night)], columns=list(_COLUMNS))
    faults = pd.DataFrame([row for night in nights for row in _faults(night)], columns=list(_FAULTS))
    order = [str(night["night"]) for night in nights]
    added = ["runs", "windows", "available", "asked", "bit", "seconds", *VERDICTS]
    by_night = lines.groupby("night", sort=False)[added].sum().reindex(order, fill_value=0)
    by_host = lines.groupby(["night", "host"], sort=False)[added].sum().reset_index()
    for table in (by_night, by_host):
        table["share"] = table["available"] / table["windows"].where(table["windows"] > 0)
    return Tables(
        lines=lines,
        faults=faults.groupby(["night", "host", "kind"], sort=False)[["asked", "bit"]].sum().reset_index(),
        nights=by_night.reset_index(names="night"),
        hosts=by_host,
    )


def causes_of(night: Night) -> set[tuple[str, str, str]]:
    """Return the causes of a night's violations."""
    return {
        (each["cause"]["kind"], each["cause"]["checker"], each["cause"]["text"])
        for each in night["causes"]
        if each["verdict"] != "unknown"
    }


def _lines(night: Night) -> Iterator[dict[str, Any]]:
    for line in _counted(night):
        count = line["count"]
        found = [finding["verdict"] for finding in count["findings"]]
        yield {
            "night": str(night["night"]),
            "host": line["host"],
            "line": line["name"],
            **{name: count[name] for name in ("runs", "windows", "available", "gap_s", "seconds")},
            **{name: sum(count[name].values()) for name in ("asked", "bit")},
            **{verdict: found.count(verdict) for verdict in VERDICTS},
        }


def _faults(night: Night) -> Iterator[dict[str, Any]]:
    for line in _counted(night):
        asked, bit = line["count"]["asked"], line["count"]["bit"]
        for kind in sorted({*asked, *bit}):
            yield {
                "night": str(night["night"]),
                "host": line["host"],
                "kind": kind,
                "asked": asked.get(kind, 0),
                "bit": bit.get(kind, 0),
            }


def _counted(night: Night) -> list[Mapping[str, Any]]:
    return [line for line in night["lines"] if line["role"] != Role.CANARY]

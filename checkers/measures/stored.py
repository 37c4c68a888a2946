"""
The stored results of a suite, as rows: its runs and their anomalies, as suite.json has them. Nothing is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa

from checkers.measures.run import UNREADABLE
from checkers.measures.schema import SCHEMAS
from harness.model import Anomaly, UsageError
from harness.run.result import RunResult
from harness.run.suite import Suite
from harness.scenario.variant import is_mutant

RUN: Final = "run"
ANOMALY: Final = "anomaly"
_NOON: Final = timedelta(hours=12)

_PLAIN: Final = ("night", "suite", "run", "workload", "protocol", "family", "release", "host", "clock")
_STORED: Final = ("started", "place", "seed", "expected", "found", "status", "verdict", "seconds", "elections")
_ANOMALY: Final = ("kind", "topic", "partition", "first", "end", "offsets", "nodes", "epoch", "checker")


def _nullable(table: str, *names: str) -> list[pa.Field]:
    return [SCHEMAS[table].field(name).with_nullable(True) for name in names]


# A row of each run and of each anomaly; `folder` is the suite's, `path` the run's.
STORED_SCHEMA: Final = pa.schema(
    [
        ("what", pa.string()),
        ("folder", pa.string()),
        ("path", pa.string()),
        *_nullable("runs", *_PLAIN, *_STORED),
        *_nullable("anomalies", *_ANOMALY),
        ("reason", pa.string()),
    ]
)


def stored_rows(folder: str, content: bytes) -> Iterator[dict[str, Any]]:
    """
    Yield a row for each run of a suite and for each anomaly, or one that says why its table cannot be read.

    Args:
        folder: the suite's folder.
        content: its suite.json.
    """
    try:
        suite = Suite.parse(content.decode(), "suite.json")
        started = _started(suite.started)
    except UnicodeDecodeError as error:
        yield unread_suite(folder, f"suite.json: {error}; expected the table of a suite, in UTF-8")
        return
    except UsageError as error:
        yield unread_suite(folder, str(error))
        return
    yield from _rows(folder, suite, started)


def untabled_rows(folder: str, suite: Suite, unread: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """
    Yield the rows of a suite without a table, and one for each of its runs that has no result.

    Args:
        folder: the suite's folder.
        suite: what its runs say of themselves: not how long they took, nor how many elections they had.
        unread: run -> why it has no result.
    """
    for row in _rows(folder, suite, _started(suite.started)):
        yield row | {"seconds": None, "elections": None}
    for name, reason in unread.items():
        yield unread_suite(folder, reason) | {"path": f"{folder}/{name}", "run": name}


def unread_suite(folder: str, reason: str) -> dict[str, Any]:
    """Return the row of a suite whose table cannot be read."""
    return {"what": UNREADABLE, "folder": folder, "suite": PurePosixPath(folder).name, "reason": reason[:1000]}


def night_of(started: datetime) -> date:
    """Return the night of a moment: it lasts from noon to noon in UTC, and has the date on which it begins."""
    return (started.astimezone(UTC) - _NOON).date()


def family_of(protocol: str, *, changed: bool) -> str:
    """Return what protocols are counted by: a protocol without changes, or all mutants of one together."""
    return f"{protocol.partition('+')[0]} mutants" if changed or is_mutant(protocol) else protocol


def _rows(folder: str, suite: Suite, started: datetime) -> Iterator[dict[str, Any]]:
    for place, result in enumerate(suite.results):
        about = _about(folder, suite, result, started)
        yield about | _run(result, started, place)
        for anomaly in result.anomalies:
            yield about | _anomaly(anomaly)


def _started(text: str) -> datetime:
    try:
        started = datetime.fromisoformat(text)
    except ValueError:
        started = None
    if started is None or started.tzinfo is None:
        raise UsageError(
            f"suite.json: started {text!r:.80}; expected a date and a time with its offset from UTC, in ISO 8601"
        )
    return started.astimezone(UTC)


def _about(folder: str, suite: Suite, result: RunResult, started: datetime) -> dict[str, Any]:
    return {
        "folder": folder,
        "path": f"{folder}/{result.run}",
        "night": night_of(started),
        "suite": PurePosixPath(folder).name,
        "run": result.run,
        "workload": result.scenario,
        "protocol": result.protocol,
        "family": family_of(result.protocol, changed=bool(suite.rules)),
        "release": suite.target,
        "host": suite.host,
        "clock": "virtual" if suite.simulated else "real",
    }


def _run(result: RunResult, started: datetime, place: int) -> dict[str, Any]:
    return {
        "what": RUN,
        "started": started,
        "place": place,
        "seed": result.seed,
        "expected": result.expected,
        "found": result.found,
        "status": result.status.value,
        "verdict": result.verdict.name.lower(),
        "seconds": float(result.seconds),
        "elections": result.activity.elections,
    }


def _anomaly(anomaly: Anomaly) -> dict[str, Any]:
    return {
        "what": ANOMALY,
        "kind": anomaly.kind.value,
        "verdict": anomaly.verdict.name.lower(),
        "topic": anomaly.topic,
        "partition": anomaly.partition,
        "first": [first for first, _ in anomaly.ranges],
        "end": [end for _, end in anomaly.ranges],
        "offsets": anomaly.offsets,
        "nodes": list(anomaly.nodes),
        "epoch": anomaly.epoch,
        "checker": anomaly.checker,
    }

"""
Check many runs at once with PySpark: one session for each command.

A small run is judged whole by one executor, from the lines of its history, by the same function as in this
process. A large one is judged from its tables (harness/tables): Spark finds where evidence differs, and the pure
rules judge each partition from its events and what is in doubt. Only the rules decide what is a violation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.checker import Checker, check, unproven
from checkers.facts.sequence import breaks_of
from checkers.facts.view import NO_KEY
from checkers.judge import check_in_process
from checkers.spark.evidence import Part
from checkers.spark.executor import (
    ANOMALY_SCHEMA,
    HEAD_SCHEMA,
    JUDGED,
    LINES_SCHEMA,
    head_of_rows,
    lines_judge,
    rows_judge,
)
from checkers.spark.pieces import events_by_part, pieces
from checkers.spark.tables import PART, Tables
from harness.model import Anomaly, Kind
from harness.run.store import Run
from harness.tables.schema import FOLDER, LINES_MAX, Manifest, TablesError
from harness.tables.writer import make_tables, read_manifest

# Large runs whose tables are queried together.
_TOGETHER: Final = 8


def check_runs(
    session: SparkSession,
    folders: Sequence[Path],
    checkers: Mapping[str, Checker],
    *,
    lines_max: int = LINES_MAX,
) -> dict[str, list[Anomaly]]:
    """
    Apply the checkers to every run, and return each run's anomalies.

    Nothing in one run touches another: what cannot be read makes its own run unknown, and two runs of one name in
    two suites are two runs.

    Args:
        session: the Spark session of checkers.spark.session.spark_session.
        folders: the runs' folders, each once.
        checkers: the checkers by name.
        lines_max: the size in bytes of a history up to which it is judged from its lines.

    Returns:
        An entry for each run by its name, or by its folder's path if two runs have one name; [] if nothing was
        found. Breaks in the order of the ops come first, then anomalies by partition, in the checkers' order.
    """
    if not folders:
        return {}
    names = _names(folders)
    small: list[Run] = []
    large: list[Run] = []
    for run in (Run(path=folder) for folder in folders):
        is_small = run.history.exists() and run.history.stat().st_size <= lines_max
        (small if is_small else large).append(run)
    found = _check_lines(session, small, checkers)
    for place in range(0, len(large), _TOGETHER):
        found |= _check_tables(session, large[place : place + _TOGETHER], checkers)
    return {name: found[folder] for folder, name in sorted(names.items(), key=lambda item: item[1])}


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """Return each run's name, or its folder's path if two runs have one name."""
    names = {folder: folder.name for folder in folders}
    if len({*names.values()}) == len(names):
        return names
    return {folder: str(folder) for folder in folders}


def _check_lines(
    session: SparkSession, runs: Sequence[Run], checkers: Mapping[str, Checker]
) -> dict[Path, list[Anomaly]]:
    """Judge runs whole, each from the lines of its history."""
    found: dict[Path, list[Anomaly]] = {run.path: [] for run in runs}
    if not runs:
        return found
    cores = session.sparkContext.defaultParallelism
    # Some more tasks than cores, so that one with long histories does not keep the others waiting.
    session.conf.set("spark.sql.files.minPartitionNum", min(len(runs), 4 * cores))
    files = session.read.format("binaryFile").load([_escaped(run.history) for run in runs])
    judged = files.select("path", "content").mapInArrow(lines_judge(checkers), from_arrow_schema(LINES_SCHEMA))
    by_path: dict[str, list[Anomaly]] = {}
    for row in sorted(judged.toArrow().to_pylist(), key=_place):
        _add(by_path.setdefault(_local(row["path"]), []), row)
    for run in runs:
        judged_here = by_path.get(run.history.absolute().as_posix())
        if judged_here is not None:
            found[run.path] = judged_here
        elif not run.history.stat().st_size:
            found[run.path] = check_in_process([], checkers)  # Spark skips files without a byte
        else:
            found[run.path] = [_unreadable(f"Spark did not read {run.history}")]
    return found


def _check_tables(
    session: SparkSession, runs: Sequence[Run], checkers: Mapping[str, Checker]
) -> dict[Path, list[Anomaly]]:
    """Judge runs from their tables; if those of one cannot be read, it alone is unknown."""
    found: dict[Path, list[Anomaly]] = {}
    manifests: dict[Path, Manifest] = {}
    for run in runs:
        try:
            manifest = _tables_of(run)
        except (OSError, TablesError) as error:
            found[run.path] = [_unreadable(str(error))]
            continue
        if manifest.ops:
            manifests[run.path] = manifest
        else:
            found[run.path] = check([], checkers)  # it has no row to judge, and lacks all evidence
    if not manifests:
        return found
    try:
        return found | _judge_tables(session, manifests, checkers)
    except Exception as error:
        if len(manifests) == 1:
            (path,) = manifests
            return found | {path: [_unreadable(f"{path}: {_said(error)}")]}
    for run in runs:
        if run.path in manifests:
            found |= _check_tables(session, [run], checkers)
    return found


def _tables_of(run: Run) -> Manifest:
    """Return the manifest of a run's tables; make them from its lines if they are not there or not whole."""
    try:
        return read_manifest(run.history)
    except TablesError:
        if not run.history.exists():
            raise
    make_tables(run.history)
    return read_manifest(run.history)


def _judge_tables(
    session: SparkSession, manifests: Mapping[Path, Manifest], checkers: Mapping[str, Checker]
) -> dict[Path, list[Anomaly]]:
    paths = [*manifests]
    tables = Tables(session, [_escaped(path / FOLDER) for path in paths])
    tables.expect(0)
    parts = _parts(tables, [manifests[path] for path in paths])
    places = {(part.run, part.part): (part.topic, part.partition) for part in parts}
    judge = rows_judge(checkers, places)
    judged = pieces(tables, parts).groupBy(*PART).applyInArrow(judge, from_arrow_schema(ANOMALY_SCHEMA))
    by_part: dict[tuple[int, int], list[Anomaly]] = {}
    for row in sorted(judged.toArrow().to_pylist(), key=_place):
        _add(by_part.setdefault((row["run"], row["part"]), []), row)
    found: dict[Path, list[Anomaly]] = {path: [] for path in paths}
    for key, place in sorted(places.items(), key=lambda item: item[1]):
        found[paths[key[0]]] += by_part.get(key, [_unreadable(f"{place[0]}-{place[1]}: Spark did not judge it")])
    return {path: _whole(manifests[path], found[path]) for path in paths}


def _place(row: Mapping[str, Any]) -> int:
    return int(row["place"])


def _add(found: list[Anomaly], row: Mapping[str, Any]) -> None:
    if row["place"] != JUDGED:
        found.append(Anomaly.from_dict(json.loads(row["anomaly"])))


def _parts(tables: Tables, manifests: Sequence[Manifest]) -> list[Part]:
    """Return every partition with its head."""
    keys = [
        {"run": run, "part": part}
        for run, manifest in enumerate(manifests)
        for part, _ in enumerate(manifest.parts or (NO_KEY,))
    ]
    events = events_by_part(tables["events"], tables.small(keys))
    heads = events.groupBy(*PART).applyInArrow(head_of_rows, from_arrow_schema(HEAD_SCHEMA))
    # What the raw client sent can be guessed of older histories, from all values at once (checkers/facts/sent.py).
    untold = tables["produces"].where("digest is null").select(*PART).distinct().toArrow().to_pylist()
    found: list[Part] = []
    rows = heads.toArrow().to_pylist()
    if len(rows) != len(keys):
        raise TablesError(f"{len(rows)} of {len(keys)} partitions have events; expected all to have some")
    for row in rows:
        manifest, key = manifests[row["run"]], {name: row[name] for name in PART}
        topic, partition = (manifest.parts or (NO_KEY,))[row["part"]]
        head = json.loads(row["head"])
        irregular = manifest.irregular.get(f"{topic}-{partition}", "")
        unsaid = "clients did not say what they sent" if key in untold else ""
        head["why"] = head["why"] or irregular or unsaid
        logs = {index: log for log, (part, _, index) in enumerate(manifest.logs) if part == row["part"]}
        found.append(Part(**key, topic=topic, partition=partition, head=head, logs=logs))
    return found


def _whole(manifest: Manifest, anomalies: list[Anomaly]) -> list[Anomaly]:
    """Return a run's anomalies with the breaks in the order of its ops first."""
    broken = breaks_of(manifest.skips, manifest.falls)
    return [*broken, *(unproven(anomalies) if broken else anomalies)]


def _unreadable(why: str) -> Anomaly:
    topic, partition = NO_KEY
    return Anomaly(
        kind=Kind.UNCHECKED,
        topic=topic,
        partition=partition,
        sentence=f"The run could not be read: {why}.",
        checker="whole",
    )


def _said(error: Exception) -> str:
    """Return what Spark says of an error in one line, without the calls that it came from."""
    said = re.split(r"\sat (?:org|java|scala)\.", str(error))[0]
    return re.sub(r"^An error occurred while calling \w+\.\w+\. : (?:\w+\.)*", "", " ".join(said.split()))[:300]


def _escaped(path: Path) -> str:
    """Return a path in which Spark sees no pattern."""
    text = str(path.absolute())
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in text)


def _local(uri: str) -> str:
    """Return the path of a file that Spark names."""
    return uri.removeprefix("file://").removeprefix("file:")

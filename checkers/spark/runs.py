"""
Check many runs at once with PySpark: one session for each command.

A small run is judged whole by one executor, from the lines of its history, by the same function as in this
process. A large one is judged from its tables (harness/tables): Spark finds where evidence differs, and the pure
rules judge each partition from its events and what is in doubt. Only the rules decide what is a violation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.checker import Checker, of_run, unproven
from checkers.facts.sequence import breaks_of
from checkers.facts.view import NO_KEY, unchecked
from checkers.judge import check_in_process
from checkers.spark.assemble import Context
from checkers.spark.errors import said
from checkers.spark.executor import JUDGED, LINES_SCHEMA, head_of_rows, lines_judge, rows_judge
from checkers.spark.head import Head, Part
from checkers.spark.options import Folder, name_of
from checkers.spark.pieces import events_of, pieces
from checkers.spark.reading import Key, each_key
from checkers.spark.scan import Parts, Tables
from checkers.spark.search import LIMITS, Limits, folded
from checkers.spark.storage import HISTORY, Stored, look, manifests_of
from checkers.spark.sums import sums_of
from harness.model import Anomaly
from harness.tables.manifest import LINES_MAX, Manifest, TablesError

# Large runs whose tables are queried together.
_TOGETHER: Final = 8


def check_runs(
    session: SparkSession,
    folders: Sequence[Folder],
    checkers: Mapping[str, Checker],
    *,
    lines_max: int = LINES_MAX,
    limits: Limits = LIMITS,
) -> dict[str, list[Anomaly]]:
    """
    Apply the checkers to every run, and return each run's anomalies.

    Nothing in one run touches another: what cannot be read makes its own run unknown, and two runs of one name in
    two suites are two runs.

    Args:
        session: the Spark session of checkers.spark.session.spark_session.
        folders: the runs' folders, each once: local paths, or URIs that Spark can read.
        checkers: the checkers by name.
        lines_max: the size in bytes of a history up to which it is judged from its lines.
        limits: how far to look for what is in doubt in larger ones.

    Returns:
        An entry for each run by its name, or by its folder's path if two runs have one name; [] if nothing was
        found. Breaks in the order of the ops come first, then anomalies by partition, in the checkers' order.
    """
    if not folders:
        return {}
    names = _names(folders)
    small: list[Stored] = []
    large: list[Stored] = []
    for run in look(session, folders):
        is_small = run.history is not None and run.history <= lines_max
        (small if is_small else large).append(run)
    found = _check_lines(session, small, checkers)
    for place in range(0, len(large), _TOGETHER):
        found |= _check_tables(session, large[place : place + _TOGETHER], checkers, limits)
    return {name: found[folder] for folder, name in sorted(names.items(), key=lambda item: item[1])}


def _names(folders: Sequence[Folder]) -> dict[Folder, str]:
    """Return each run's name, or its folder's path if two runs have one name."""
    names = {folder: name_of(folder) for folder in folders}
    if len({*names.values()}) == len(names):
        return names
    return {folder: str(folder) for folder in folders}


def _check_lines(
    session: SparkSession, runs: Sequence[Stored], checkers: Mapping[str, Checker]
) -> dict[Folder, list[Anomaly]]:
    """Judge runs whole, each from the lines of its history."""
    # Spark skips files without a byte.
    found: dict[Folder, list[Anomaly]] = {
        run.folder: check_in_process([], checkers) for run in runs if not run.history
    }
    left = [run for run in runs if run.history]
    if not left:
        return found
    cores = session.sparkContext.defaultParallelism
    # Some more tasks than cores, so that one with long histories does not keep the others waiting.
    session.conf.set("spark.sql.files.minPartitionNum", min(len(left), 4 * cores))
    by_path = _judge_lines(session, left, checkers, skip="true")
    unread = [run for run in left if run.named(HISTORY) not in by_path]
    why = ""
    if unread:
        # What it was is not said of a file that is skipped, and may be the same for thousands.
        try:
            by_path |= _judge_lines(session, unread[:1], checkers, skip="false")
        except Exception as error:
            why = f" (of {unread[0].path(HISTORY)} it says: {said(error)})"
    for run in left:
        judged_here = by_path.get(run.named(HISTORY))
        found[run.folder] = (
            [_unreadable(f"Spark did not read {run.place}/{HISTORY}{why}")] if judged_here is None else judged_here
        )
    return found


def _judge_lines(
    session: SparkSession, runs: Sequence[Stored], checkers: Mapping[str, Checker], *, skip: str
) -> dict[str, list[Anomaly]]:
    """Return the anomalies of runs by the path of their history; `skip` those that cannot be read."""
    source = session.read.format("binaryFile").options(ignoreMissingFiles=skip, ignoreCorruptFiles=skip)
    files = source.load([run.path(HISTORY) for run in runs]).select("path", "content")
    judged = files.mapInArrow(lines_judge(checkers), from_arrow_schema(LINES_SCHEMA))
    rows = [(_plain(row["path"]), row) for row in judged.toArrow().to_pylist()]
    return _anomalies(rows)


def _check_tables(
    session: SparkSession, runs: Sequence[Stored], checkers: Mapping[str, Checker], limits: Limits
) -> dict[Folder, list[Anomaly]]:
    """Judge runs from their tables; if those of one cannot be read, it alone is unknown."""
    found: dict[Folder, list[Anomaly]] = {}
    whole: dict[Folder, Manifest] = {}
    for run, manifest in zip(runs, manifests_of(session, runs), strict=True):
        if isinstance(manifest, Exception):
            found[run.folder] = [_unreadable(str(manifest))]
        elif manifest.ops:
            whole[run.place] = manifest
        else:
            found[run.folder] = check_in_process([], checkers)  # it has no row to judge, and lacks all evidence
    judged = _judge_together(session, whole, checkers, limits)
    return found | {run.folder: judged[run.place] for run in runs if run.place in judged}


def _judge_together(
    session: SparkSession, manifests: Mapping[Folder, Manifest], checkers: Mapping[str, Checker], limits: Limits
) -> dict[Folder, list[Anomaly]]:
    """Judge runs in the same queries, or, if one of them cannot be read, each in its own."""
    if not manifests:
        return {}
    try:
        return _judge_tables(session, manifests, checkers, limits)
    except Exception as error:
        if len(manifests) == 1:
            return {path: [_unreadable(f"{path}: {said(error)}")] for path in manifests}
    found: dict[Folder, list[Anomaly]] = {}
    for path, manifest in manifests.items():
        found |= _judge_together(session, {path: manifest}, checkers, limits)
    return found


def _judge_tables(
    session: SparkSession, manifests: Mapping[Folder, Manifest], checkers: Mapping[str, Checker], limits: Limits
) -> dict[Folder, list[Anomaly]]:
    paths = [*manifests]
    with Tables(session, paths) as tables:
        parts, rows, about = selected(tables, [*manifests.values()], limits)
        judged = rows.mapPartitions(partial(each_key, rows_judge(checkers, about))).collect()
    by_part = _anomalies(judged)
    found: dict[Folder, list[list[Anomaly]]] = {path: [] for path in paths}
    for part in sorted(parts, key=lambda part: part.place):
        unjudged = [_unreadable(f"{part.topic}-{part.partition}: Spark did not judge it")]
        found[paths[part.run]].append(by_part.get(part.key, unjudged))
    return {path: _whole(manifests[path], of_run(found[path])) for path in paths}


def selected(
    tables: Tables, manifests: Sequence[Manifest], limits: Limits = LIMITS
) -> tuple[list[Part], Parts, dict[Key, Context]]:
    """Return all partitions of runs with the rows by which they are judged, and what is known beside these."""
    with ThreadPoolExecutor(1) as pool:
        # Heads are a few rows; meanwhile the cores can fold.
        heads = pool.submit(_parts, tables, manifests)
        folds = tables.keep(tables.gather(folded(tables, range(len(manifests)), limits.coarse)))
        sums = sums_of(folds)
        parts = heads.result()
    rows, about = pieces(tables, parts, folds, sums, manifests, limits=limits)
    return parts, rows, about


def _anomalies(judged: Iterable[tuple[Any, Mapping[str, Any]]]) -> dict[Any, list[Anomaly]]:
    """Return the anomalies of all that was judged, by what it is named by."""
    found: dict[Any, list[Anomaly]] = {}
    for key, row in sorted(judged, key=lambda item: int(item[1]["place"])):
        anomalies = found.setdefault(key, [])
        if row["place"] != JUDGED:
            anomalies.append(Anomaly.from_dict(json.loads(row["anomaly"])))
    return found


def _parts(tables: Tables, manifests: Sequence[Manifest]) -> list[Part]:
    """Return every partition with its head."""
    parts = [
        Part(
            run=run,
            part=number,
            topic=topic,
            partition=partition,
            head=Head(),
            logs={
                log: (replica, index) for log, (part, replica, index) in enumerate(manifest.logs) if part == number
            },
        )
        for run, manifest in enumerate(manifests)
        for number, (topic, partition) in enumerate(manifest.parts or (NO_KEY,))
    ]
    rows = tables.gather(tables.scan(events_of(parts))).mapPartitions(partial(each_key, head_of_rows))
    by_key = {key: Head.from_json(text) for key, text in rows.collect()}
    if len(by_key) != len(parts):
        raise TablesError(f"{len(by_key)} of {len(parts)} partitions have events; expected all to have some")
    return [_with_head(part, by_key[part.key], manifests[part.run]) for part in parts]


def _with_head(part: Part, head: Head, manifest: Manifest) -> Part:
    irregular = manifest.irregular.get(f"{part.topic}-{part.partition}", "")
    return replace(part, head=replace(head, why=head.why or irregular))


def _whole(manifest: Manifest, anomalies: list[Anomaly]) -> list[Anomaly]:
    """Return a run's anomalies with the breaks in the order of its ops first."""
    broken = breaks_of(manifest.skips, manifest.falls)
    return [*broken, *(unproven(anomalies) if broken else anomalies)]


def _unreadable(why: str) -> Anomaly:
    return unchecked(NO_KEY, f"The run could not be read: {why}.", "whole")


def _plain(uri: str) -> str:
    """Return the one spelling of a URI that Spark may write with three slashes."""
    return f"file:{uri.removeprefix('file://')}" if uri.startswith("file:///") else uri

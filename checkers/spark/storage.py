"""
Where runs are stored: on this machine's file systems, or where only Spark's own readers reach.

Both storages say the same of a run: how long its history is, which files its tables have, and, before a row is
read, whether its tables are whole. What is elsewhere is listed, read and counted by Spark; only sizes of files,
manifests, schemas and numbers of rows come to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.spark.errors import said
from checkers.spark.options import Folder, local_place, spark_path
from harness.model import UsageError
from harness.run.store import Run
from harness.tables.manifest import FOLDER, MANIFEST, Manifest, TablesError, check_size, table_path
from harness.tables.schema import SCHEMAS
from harness.tables.writer import ensure_tables

HISTORY: Final = "history.jsonl"
_ANOMALIES: Final = "anomalies.json"
_GLOB: Final = f"{{{HISTORY},{MANIFEST},*.parquet}}"
# Small questions to Spark that are asked at once.
_TOGETHER: Final = 8

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """
    A run's folder and what is in it.

    Attributes:
        folder: as it was asked for.
        place: as the storage itself names it.
        history: the bytes of its history, None if there is none.
        tables: the bytes of each file of its tables.
    """

    folder: Folder
    place: Folder
    history: int | None = None
    tables: Mapping[str, int] = field(default_factory=dict)

    def path(self, *names: str) -> str:
        """Return the path of a file in it as Spark takes it."""
        return spark_path(self.place, *names)

    def named(self, name: str) -> str:
        """Return the path of a file in it as Spark names it."""
        place = self.place
        return f"file:{local_place(place)}/{name}" if isinstance(place, Path) else f"{place}/{name}"


# Of a run: what its tables are, or what is wrong with them.
Known: TypeAlias = Manifest | TablesError | OSError


class Storage(Protocol):
    """What a check must know of runs before Spark reads their rows."""

    def look(self, folders: Sequence[Any]) -> list[Stored]:
        """Return what is in these folders, in their order; a folder that is not there is empty."""

    def manifests(self, runs: Sequence[Stored]) -> list[Known]:
        """Return what is known of the tables of each run."""


class LocalStorage:
    """Folders of this machine; executors elsewhere must have the same files under the same paths."""

    def look(self, folders: Sequence[Path]) -> list[Stored]:
        """Return what is in these folders."""
        return [_looked(Run(path=folder)) for folder in folders]

    def manifests(self, runs: Sequence[Stored]) -> list[Known]:
        """Return manifests; tables that are not there or not whole are made from the run's lines."""
        return [_made(Run(path=Path(run.place))) for run in runs]


class SparkStorage:
    """Folders that Spark names by URIs, whatever their scheme."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def find(self, roots: Iterable[str]) -> dict[str, str | None]:
        """
        Return the folders of all runs below these, or that these are, each with the text of its anomalies.json.

        Patterns are expanded as Spark does. The text is None if there is none.

        Raises:
            UsageError: one is not there, or Spark cannot read there.
        """
        runs: set[str] = set()
        texts: dict[str, str] = {}
        for root in roots:
            try:
                runs |= {_run_of(path) for path in self._listed([root])}
                texts |= self._anomalies(root)
            except Exception as error:
                raise UsageError(
                    f"{root}: {said(error)}; expected a folder of runs that Spark can list; its settings are "
                    "given by --conf"
                ) from error
        return {run: texts.get(f"{run}/{_ANOMALIES}") for run in sorted(runs)}

    def look(self, folders: Sequence[str]) -> list[Stored]:
        """Return what is in these folders; each that Spark cannot list is empty."""
        files = self._files(folders)
        here: dict[str, dict[str, int]] = {}
        for path, size in files.items():
            here.setdefault(_run_of(path), {})[path] = size
        alone = [folder for folder in folders if folder not in here]
        # Spark may name a folder otherwise than it was asked for: hdfs:///runs becomes hdfs://HOST/runs.
        named = (
            {folder: self._files([folder]) for folder in alone}
            if len(folders) > 1
            else dict.fromkeys(alone, files)
        )
        return [_stored(folder, here[folder] if folder in here else named[folder]) for folder in folders]

    def manifests(self, runs: Sequence[Stored]) -> list[Known]:
        """Return manifests; tables are not made again here."""
        texts = self._texts([run for run in runs if MANIFEST in run.tables])
        with ThreadPoolExecutor(_TOGETHER) as pool:
            return [*pool.map(lambda run: self._manifest(run, texts), runs)]

    def _files(self, folders: Sequence[str]) -> dict[str, int]:
        """List folders at once, or one by one if one of them cannot be listed."""
        try:
            return self._listed([spark_path(folder) for folder in folders])
        except Exception:
            if len(folders) == 1:
                return {}
            return {path: size for folder in folders for path, size in self._files([folder]).items()}

    def _listed(self, paths: Sequence[str]) -> dict[str, int]:
        """Return all files of runs below these paths, each with its size."""
        files = self._binary(recursiveFileLookup="true", pathGlobFilter=_GLOB).load(list(paths))
        # Rows are without files of no byte; these are among the inputs, whose names are encoded.
        sizes = {unquote(uri): 0 for uri in files.inputFiles()}
        return sizes | {row["path"]: row["length"] for row in _rows(files.select("path", "length"))}

    def _anomalies(self, root: str) -> dict[str, str]:
        """Return what is stored of runs below this path: as much as was found in them, however long they are."""
        files = self._binary(recursiveFileLookup="true", pathGlobFilter=_ANOMALIES).load(root)
        found = _rows(files.select("path", "content"))
        return {row["path"]: row["content"].decode(errors="replace") for row in found}

    def _texts(self, runs: Sequence[Stored]) -> dict[str, bytes]:
        if not runs:
            return {}
        try:
            paths = [run.path(FOLDER, MANIFEST) for run in runs]
            return {
                row["path"]: row["content"] for row in _rows(self._binary().load(paths).select("path", "content"))
            }
        except Exception:
            if len(runs) == 1:
                return {}
            return {path: text for run in runs for path, text in self._texts([run]).items()}

    def _manifest(self, run: Stored, texts: Mapping[str, bytes]) -> Manifest | TablesError:
        folder = f"{run.place}/{FOLDER}"
        path = f"{folder}/{MANIFEST}"
        try:
            if path not in texts:
                raise TablesError(f"{path}: no such file; expected the manifest of a run's tables")
            manifest = Manifest.parse(texts[path], path)
            if run.history not in (None, manifest.size):
                raise TablesError(
                    f"{folder}: made from a history of {manifest.size} bytes; expected {run.history}"
                )
            for name in SCHEMAS:
                self._check(run, name, manifest.rows.get(name), manifest.sizes.get(name))
        except TablesError as error:
            return TablesError(
                f"{error}; tables are made from lines of local folders only: check the run there first"
            )
        return manifest

    def _check(self, run: Stored, name: str, rows: int | None, size: int | None) -> None:
        """
        Raise TablesError if a table is missing, is cut short, has other columns, or is another file.

        The version that a file says of itself cannot be read by Spark; a file of another version has another size.
        """
        file = table_path(Path(FOLDER), name).name
        where = f"{run.place}/{FOLDER}/{file}"
        if file not in run.tables:
            raise TablesError(f"{where}: no such file; expected a table of this run")
        try:
            table = self._session.read.parquet(run.path(FOLDER, file))
            found, count = {column.name: column.dataType for column in table.schema}, table.count()
        except Exception as error:
            raise TablesError(f"{where}: {said(error)}; expected a table of this run") from error
        for column in from_arrow_schema(SCHEMAS[name]):
            if found.get(column.name) != column.dataType:
                here = found[column.name].simpleString() if column.name in found else "not there"
                raise TablesError(
                    f"{where}: column {column.name} is {here}; expected {column.dataType.simpleString()}"
                )
        if count != rows:
            raise TablesError(f"{where}: {count} rows; expected {rows}")
        check_size(where, run.tables[file], size)

    def _binary(self, **options: str) -> Any:
        return self._session.read.format("binaryFile").options(**options)


def look(session: SparkSession, folders: Sequence[Folder]) -> list[Stored]:
    """Return what is in these folders, wherever they are, in their order."""
    found: dict[Folder, Stored] = {}
    for storage, some in _by_storage(session, folders, lambda folder: folder):
        found.update(zip(some, storage.look(some), strict=True))
    return [found[folder] for folder in folders]


def manifests_of(session: SparkSession, runs: Sequence[Stored]) -> list[Known]:
    """Return what is known of the tables of each run, in their order, wherever they are."""
    found: dict[Folder, Known] = {}
    for storage, some in _by_storage(session, runs, lambda run: run.folder):
        found.update(zip((run.folder for run in some), storage.manifests(some), strict=True))
    return [found[run.folder] for run in runs]


def _by_storage(
    session: SparkSession, items: Sequence[T], folder: Callable[[T], Folder]
) -> Iterator[tuple[Storage, list[T]]]:
    local = [item for item in items if isinstance(folder(item), Path)]
    elsewhere = [item for item in items if not isinstance(folder(item), Path)]
    if local:
        yield LocalStorage(), local
    if elsewhere:
        yield SparkStorage(session), elsewhere


def _looked(run: Run) -> Stored:
    history = run.history.stat().st_size if run.history.exists() else None
    tables = {path.name: path.stat().st_size for path in run.tables.glob("*") if path.is_file()}
    return Stored(folder=run.path, place=run.path, history=history, tables=tables)


def _made(run: Run) -> Known:
    try:
        return ensure_tables(run.history)
    except (OSError, TablesError) as error:
        return error


def _stored(folder: str, files: Mapping[str, int]) -> Stored:
    """Return a run that has these files; of several runs below one folder, none."""
    places = {_run_of(path) for path in files}
    if len(places) != 1:
        return Stored(folder=folder, place=folder)
    (place,) = places
    named = {path.removeprefix(f"{place}/"): size for path, size in files.items()}
    tables = {name.removeprefix(f"{FOLDER}/"): size for name, size in named.items() if name != HISTORY}
    return Stored(folder=folder, place=place, history=named.get(HISTORY), tables=tables)


def _run_of(path: str) -> str:
    """Return the folder of the run that has this file."""
    folder = path.rpartition("/")[0]
    return folder if path.endswith(f"/{HISTORY}") else folder.rpartition("/")[0]


def _rows(found: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.toArrow().to_pylist()
    return rows

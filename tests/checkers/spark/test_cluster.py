"""A standalone cluster whose machines know nothing of Fencepost checks runs as this process does."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.made.history import Maker, Shape
from benchmarks.made.plants import Plant
from benchmarks.standalone import standalone
from checkers.judge import check_in_process
from checkers.spark import cluster
from checkers.spark.cluster import NEEDED, PACKAGES, equip
from harness.java import find_java
from harness.model import Anomaly, UsageError
from harness.run.store import create_suite
from harness.suite.spark_worker import spark_worker
from harness.tables.writer import make_tables
from tests.checkers.golden import ops_of
from tests.kept import exhaustive

ROOT = Path(__file__).resolve().parents[3]
MODULES = tuple(
    f"checkers.spark.{path.stem}"
    for path in sorted((ROOT / "checkers" / "spark").glob("*.py"))
    if "imports nothing of Spark" in " ".join(path.read_text(encoding="utf-8").split())
)
IMPORTED = (
    f"import sys, checkers, {', '.join(MODULES)}"
    + """
from importlib.metadata import packages_distributions
theirs = packages_distributions()
names = {name.partition(".")[0] for name in sys.modules} & {*theirs}
print(*sorted(names - {"checkers", "harness", "targets", "_distutils_hack"}))
"""
)


def _stored(results: Path) -> dict[str, list[str]]:
    """Store a small run, an empty one, and two large ones, which have only tables; return what is in each."""
    suite = create_suite(results, "suite")
    small, large = suite.create_run("small"), suite.create_run("large")
    for run, name in ((small, "lost-bad"), (large, "diverged-bad")):
        run.history.write_text("".join(op.to_json() + "\n" for op in ops_of(name)), encoding="utf-8")
    make_tables(large.history)
    large.history.unlink()
    plants = (Plant(name="diverged", number=120, partition=0),)
    Maker(Shape(sends=300, stretch=100, plants=plants)).make(suite.run("made").tables)
    suite.create_run("empty").history.touch()
    return {
        "empty": _sentences(check_in_process([])),
        "large": _sentences(check_in_process(ops_of("diverged-bad"))),
        "made": [
            "A and C differ at offset 120: A holds 'w0-120' in epoch 0 and C holds 'w0-120' in epoch 0.",
            "B and C differ at offset 120: B holds 'w0-120' in epoch 0 and C holds 'w0-120' in epoch 0.",
            "C holds 'w0-120' at offset 120, not as it was sent: its key, headers or timestamp differ.",
        ],
        "small": _sentences(check_in_process(ops_of("lost-bad"))),
    }


def _sentences(anomalies: Sequence[Anomaly]) -> list[str]:
    return [anomaly.sentence for anomaly in anomalies]


@exhaustive
@pytest.mark.slow
@pytest.mark.spark
def test_cluster_of_strangers_finds_what_this_process_finds_by_paths_and_by_uris(tmp_path: Path) -> None:
    expected = _stored(tmp_path / "results")
    suite = tmp_path / "results" / "suite"
    java = find_java().home
    mounted = {"spark.hadoop.fs.viewfs.mounttable.here.link./results": f"file://{tmp_path}/results"}
    with (
        standalone(tmp_path / "cluster", java) as made,
        spark_worker(java, made.options(**mounted, spark__executor__memory="512m")) as spark,
    ):
        by_path = spark.check([suite / "small", suite / "made"])
        uris = spark.find(["viewfs://here/results/suite"])
        assert [f"viewfs://here/results/suite/{name}" for name in sorted(expected)] == [*uris]
        by_uri = spark.check([*uris])
    assert by_path == {name: by_uri[name] for name in ("made", "small")}
    assert expected == {name: _sentences(anomalies) for name, anomalies in by_uri.items()}


def test_packages_that_are_sent_are_those_that_executors_import() -> None:
    assert {"checkers.spark.executor", "checkers.spark.works", "checkers.spark.reading"} < {*MODULES}
    done = subprocess.run([sys.executable, "-c", IMPORTED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [*NEEDED] == done.stdout.split()


@pytest.mark.slow
@exhaustive
def test_what_is_sent_is_enough_for_a_python_that_has_nothing(tmp_path: Path) -> None:
    code, packages = cluster._zip_of_code(tmp_path), cluster._archive_of_packages(tmp_path)
    with tarfile.open(packages) as archive:
        archive.extractall(tmp_path / PACKAGES, filter="data")
    with zipfile.ZipFile(code) as archive:
        assert not [name for name in archive.namelist() if "__pycache__" in name]
    # -S: without the packages of this environment; -E: without its settings.
    path = [str(code), str(tmp_path / PACKAGES)]
    program = f"import sys; sys.path[:0] = {path!r}; import checkers.spark.executor as x; print(x.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-P", "-c", program], capture_output=True, text=True, check=True
    )
    assert f"{code}/checkers/spark/executor.py" == done.stdout.strip()


# --- executors that cannot be used -----------------------------------------------------------------------------
class _Context:
    """A Spark whose executors answer as they are told, one answer after the other."""

    master = "spark://there:7077"
    defaultParallelism = 1

    def __init__(self, *answers: Any) -> None:
        self._answers = [*answers]
        self.sent: list[str] = []

    def parallelize(self, numbers: Any, count: int) -> _Context:
        return self

    def mapPartitions(self, question: Any) -> _Context:
        return self

    def collect(self) -> list[Any]:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [answer]

    def addPyFile(self, path: str) -> None:
        self.sent.append(Path(path).name)

    def addArchive(self, path: str) -> None:
        self.sent.append(Path(path).name)


class _Session:
    def __init__(self, context: _Context, version: str = cluster.pyspark.__version__) -> None:
        self.sparkContext = context
        self.version = version


HAS: tuple[str, str, tuple[str, ...]] = ("python3", "there", ())
LACKS = ("python3", "there", ("pyarrow",))


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        ([HAS], ["fencepost-code.zip"]),
        ([LACKS, HAS], [f"{PACKAGES}.tar.gz#{PACKAGES}", "fencepost-code.zip"]),
    ],
)
def test_packages_are_sent_to_executors_that_lack_one_and_code_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[Any], sent: list[str]
) -> None:
    monkeypatch.setattr(cluster, "_archive_of_packages", lambda folder: folder / f"{PACKAGES}.tar.gz")
    context = _Context(*answers)
    equip(_Session(context), tmp_path)
    assert sent == context.sent


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            [LACKS, LACKS],
            "Spark: python3 on there cannot import pyarrow, though they were sent; expected executors",
        ),
        ([RuntimeError("[PYTHON_VERSION_MISMATCH] Python in worker has")], "executors do not run Python 3.1"),
        (
            [OSError('Cannot run program "python3.9": error=2')],
            "executors have no program python3.9; expected Python",
        ),
        ([ValueError("so it\nis")], "executors' Python does not run: so it is; expected Python 3"),
    ],
)
def test_executors_that_cannot_check_are_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[Any], said: str
) -> None:
    monkeypatch.setattr(cluster, "_archive_of_packages", lambda folder: folder / f"{PACKAGES}.tar.gz")
    with pytest.raises(UsageError) as caught:
        equip(_Session(_Context(*answers)), tmp_path)
    assert said in str(caught.value)
    assert "spark.pyspark.python" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_master_without_a_free_executor_and_another_spark_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "EXECUTORS_S_MAX", 0.0)
    monkeypatch.setattr(_Context, "collect", lambda self: cluster.threading.Event().wait())
    with pytest.raises(UsageError, match="spark://there:7077: no executor answered within 0 s; expected workers"):
        equip(_Session(_Context()), tmp_path)
    with pytest.raises(UsageError, match=r"Spark: SPARK_HOME has 3\.5\.0; expected 4"):
        equip(_Session(_Context(), version="3.5.0"), tmp_path)

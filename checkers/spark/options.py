"""
Which Spark checks runs, and where runs are, as a command line names both. This module imports nothing of Spark.

    master      local[*], spark://HOST:PORT, yarn, k8s://HOST:PORT
    settings    Spark's, NAME=VALUE, as spark-submit takes them with --conf
    folder      a local path, or a URI such as hdfs://HOST/PATH; one with file: is a local path
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from harness.model import UsageError

# A local path, or a URI as Spark takes it.
Folder: TypeAlias = Path | str

PYTHON: Final = "spark.pyspark.python"
_LOCAL: Final = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?")
_MASTER: Final = re.compile(rf"{_LOCAL.pattern}|local-cluster\[[\d, ]+\]|spark://[^/\s]+:\d+|yarn|k8s://\S+")
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
# What this process decides itself, and what does it instead.
_OURS: Final[Mapping[str, str]] = {
    "spark.master": "--master",
    "spark.submit.deployMode": "nothing: this process is the driver",
}
_SHOWN: Final = 60
_CONNECT_S_MAX: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """
    Which Spark checks runs.

    Attributes:
        master: as Spark takes it.
        settings: Spark's settings that the user chose; they go before our own.
    """

    master: str = "local[2]"
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Return True if tasks run in the driver's own Java."""
        return _LOCAL.fullmatch(self.master) is not None

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """Return the addresses of standalone masters; none of other masters, which Spark alone can find."""
        if not self.master.startswith("spark://"):
            return []
        each = (address.rpartition(":") for address in self.master.removeprefix("spark://").split(","))
        return [(host.strip("[]"), int(port)) for host, _, port in each]

    def to_json(self) -> str:
        """Return them as text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> SparkOptions:
        """Return the options in that text."""
        return SparkOptions(**json.loads(text))

    @staticmethod
    def of(master: str, settings: Sequence[str] = ()) -> SparkOptions:
        """
        Return the options that a command line gives.

        Args:
            master: the value of --master.
            settings: the values of --conf; of two with one name the last holds, as with spark-submit.

        Raises:
            UsageError: the master is none that Spark knows, or a setting is malformed.
        """
        if not _MASTER.fullmatch(master):
            raise UsageError(
                f"--master {master[:_SHOWN]!r}: expected local[*], local[N], spark://HOST:PORT, yarn or "
                "k8s://HOST:PORT"
            )
        return SparkOptions(master=master, settings=dict(map(_setting, settings)))


LOCAL: Final = SparkOptions()


def reach(options: SparkOptions) -> None:
    """Raise UsageError if no standalone master listens there; Spark itself would try for a minute."""
    problems = []
    for host, port in options.hosts:
        try:
            socket.create_connection((host, port), _CONNECT_S_MAX).close()
        except OSError as error:
            problems.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    if problems:
        raise UsageError(f"Spark: {options.master}: {'; '.join(problems)}; expected a master that listens there")


def folder_of(text: str) -> Folder:
    """Return the folder that is named so."""
    scheme = _URI.match(text)
    if scheme is None:
        return Path(text)
    if scheme[1].lower() != "file":
        return text.rstrip("/")
    return Path(re.sub("^/+", "/", text[len("file:") :]))


def local_place(folder: Path) -> Path:
    """
    Return the path of a local folder without `..`, for Spark to take and to name as it is written here.

    Hadoop takes `..` and the name before it off a path's text, where the kernel follows a link first. Links after
    the last `..` stay: executors elsewhere may have the files under that path and under no other.
    """
    parts = folder.absolute().parts
    # Two slashes at a path's beginning are one to Linux, and a host's name to a URI.
    parts = ("/", *parts[1:])
    above = max((place for place, part in enumerate(parts) if part == ".."), default=0)
    return Path(os.path.realpath(Path(*parts[: above + 1])), *parts[above + 1 :]) if above else Path(*parts)


def spark_path(folder: Folder, *names: str) -> str:
    """Return the path of a folder, or of a file below it, as Spark takes it, in which it sees no pattern."""
    # With its scheme: without one, Spark looks in the file system that Hadoop's settings name.
    uri = f"file://{local_place(folder)}" if isinstance(folder, Path) else folder
    text = "/".join([uri, *names])
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in text)


def name_of(folder: Folder) -> str:
    """Return the last part of its path, which is the name of a run."""
    return local_place(folder).name if isinstance(folder, Path) else folder.rstrip("/").rpartition("/")[2]


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.startswith("spark.") or not name.removeprefix("spark."):
        raise UsageError(f"--conf {text[:_SHOWN]!r}: expected spark.NAME=VALUE, as in spark.executor.memory=2g")
    if name in _OURS:
        raise UsageError(f"--conf {text[:_SHOWN]!r}: expected {_OURS[name]}")
    return name, value

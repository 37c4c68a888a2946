"""
Spark in a process of its own: `python -m checkers.spark.process [OPTION …] JAVA_HOME FOLDER`.

    --spark JSON            which Spark (checkers/spark/options.py); without it, one in a Java of this process
    --wait                  start Spark for the runs of the first request, not before it
    --keep-classes ARCHIVE  have Java write its class archive

Each line of standard input is a request in JSON. Each request but the last is answered by a line of JSON:

    in   ["results/suite/run", ...]                    check these runs: paths, or URIs as Spark takes them
    in   {"find": ["hdfs://host/results", ...]}        find runs there
    in   null                                          end normally
    out  {"up": true}                                  Spark is up; sent once, before the first answer
    out  {"found": {"run": [anomaly, ...], ...}}
    out  {"runs": {"hdfs://host/results/suite/run": the text of its anomalies.json, or null, ...}}
    out  {"usage": "what the machine lacks"} or {"crash": "traceback"}, after which the process ends

If standard input ends, the parent no longer waits for an answer (it may have been killed), and the process ends at
once. However it ends, it ends Java too, and deletes FOLDER, where both write.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NoReturn, TextIO, TypeAlias

from pyspark.sql import SparkSession

from checkers import CHECKERS
from checkers.spark.options import LOCAL, SparkOptions, folder_of
from checkers.spark.runs import check_runs
from checkers.spark.session import spark_session
from checkers.spark.storage import SparkStorage
from checkers.spark.warm import warm_up
from harness import limits
from harness.cleanup.process import until
from harness.model import UsageError

KEEP_CLASSES: Final = "--keep-classes"
# Writing an archive takes five seconds on a quiet machine.
_ARCHIVE_S_MAX: Final = 120.0


# Runs to check, or where to find some; None ends the process.
_Request: TypeAlias = list[str] | dict[str, list[str]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """
    How Spark is started.

    Attributes:
        wait: start it for the runs of the first request.
        keep_classes: the file to which Java writes its class archive.
    """

    java_home: Path
    options: SparkOptions = LOCAL
    wait: bool = False
    keep_classes: Path | None = None


class SparkProcess:
    """This process: it reads requests, writes answers, and ends Java with itself."""

    def __init__(self, folder: Path, end_s_max: float, answers: TextIO) -> None:
        self._folder = folder
        self._end_s_max = end_s_max
        self._answers = answers
        self._requests: SimpleQueue[_Request] = SimpleQueue()
        self._leaving = threading.Lock()

    def listen(self) -> None:
        """Read requests in a thread, so that the end of standard input is seen during a check too."""
        threading.Thread(target=self._listen, name="requests", daemon=True).start()

    def serve(self, setup: Setup) -> None:
        """Start Spark and answer requests until the last; warm up first if there is no request yet."""
        first: list[_Request] = [self._requests.get()] if setup.wait else []
        with spark_session(setup.java_home, setup.options, keep_classes=setup.keep_classes) as session:
            self.send({"up": True})
            if setup.keep_classes or (not first and self._requests.empty() and setup.options.is_local):
                warm_up(session)
            while (request := first.pop() if first else self._requests.get()) is not None:
                self.send(_answer(session, request))

    def send(self, answer: Mapping[str, Any]) -> None:
        """Write one line to the parent."""
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()

    def leave(self, code: int) -> NoReturn:
        """End Java, which deletes its own files; delete the folder; end this process."""
        # A second thread that calls this waits here until the first ends the process.
        self._leaving.acquire()
        # PySpark prints a traceback when its connection to Java ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        os.killpg(0, signal.SIGTERM)
        until(_childless, self._end_s_max)
        shutil.rmtree(self._folder, ignore_errors=True)
        if not _childless():
            os.killpg(0, signal.SIGKILL)
        os._exit(code)

    def _listen(self) -> None:
        for line in sys.stdin:
            request = json.loads(line)
            self._requests.put(request)
            if request is None:
                return
        self.leave(1)


def _answer(session: SparkSession, request: list[str] | dict[str, list[str]]) -> dict[str, Any]:
    if isinstance(request, dict):
        return {"runs": SparkStorage(session).find(request["find"])}
    found = check_runs(session, [*map(folder_of, request)], CHECKERS)
    return {"found": {run: [anomaly.to_dict() for anomaly in anomalies] for run, anomalies in found.items()}}


def _childless() -> bool:
    """Reap the children that have ended; return True if none is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _read(arguments: Sequence[str]) -> tuple[Path, Setup]:
    parser = argparse.ArgumentParser(prog="python -m checkers.spark.process")
    parser.add_argument("--spark", type=SparkOptions.from_json, default=LOCAL, metavar="JSON")
    parser.add_argument("--wait", action="store_true")
    parser.add_argument(KEEP_CLASSES, type=Path, metavar="ARCHIVE")
    parser.add_argument("java_home", type=Path)
    parser.add_argument("folder", type=Path)
    read = parser.parse_args(arguments)
    return read.folder, Setup(
        java_home=read.java_home, options=read.spark, wait=read.wait, keep_classes=read.keep_classes
    )


def main(arguments: Sequence[str]) -> NoReturn:
    """Answer the parent's requests until the last, then end this process."""
    folder, setup = _read(arguments)
    # Ctrl-C in a terminal is for the parent; signals to this group must reach only Java and us.
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    # A handler, not SIG_IGN: Java would inherit the ignored signal.
    signal.signal(signal.SIGTERM, lambda *_: None)
    tempfile.tempdir = str(folder)
    # Standard output carries only answers; anything that Java prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    process = SparkProcess(folder, _ARCHIVE_S_MAX if setup.keep_classes else limits.PROCESS_END_S_MAX, answers)
    process.listen()
    code = 1
    try:
        process.serve(setup)
        code = 0
    except UsageError as error:
        process.send({"usage": str(error)})
    except BaseException:
        process.send({"crash": traceback.format_exc()})
    finally:
        process.leave(code)


if __name__ == "__main__":
    main(sys.argv[1:])

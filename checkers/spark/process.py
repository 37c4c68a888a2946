"""
Spark in a process of its own: `python -m checkers.spark.process JAVA_HOME FOLDER [--keep-classes ARCHIVE]`.

Each line of standard input is a request in JSON. Each request but the last is answered by a line of JSON:

    in   ["results/suite/run", ...]                    check these runs
    in   null                                          end normally
    out  {"up": true}                                  Spark is up; sent once, before the first answer
    out  {"found": {"run": [anomaly, ...], ...}}
    out  {"usage": "what the machine lacks"} or {"crash": "traceback"}, after which the process ends

If standard input ends, the parent no longer waits for an answer (it may have been killed), and the process ends at
once. However it ends, it ends Java too, and deletes FOLDER, where both write.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NoReturn, TextIO

from checkers import CHECKERS
from checkers.spark.runs import check_runs
from checkers.spark.session import spark_session
from checkers.spark.warm import warm_up
from harness import limits
from harness.cleanup.process import until
from harness.model import UsageError

KEEP_CLASSES: Final = "--keep-classes"
# Writing an archive takes five seconds on a quiet machine.
_ARCHIVE_S_MAX: Final = 120.0


class SparkProcess:
    """This process: it reads requests, writes answers, and ends Java with itself."""

    def __init__(self, folder: Path, end_s_max: float, answers: TextIO) -> None:
        self._folder = folder
        self._end_s_max = end_s_max
        self._answers = answers
        self._requests: SimpleQueue[list[str] | None] = SimpleQueue()
        self._leaving = threading.Lock()

    def listen(self) -> None:
        """Read requests in a thread, so that the end of standard input is seen during a check too."""
        threading.Thread(target=self._listen, name="requests", daemon=True).start()

    def serve(self, java_home: Path, keep_classes: Path | None) -> None:
        """Start Spark and answer requests until the last; warm up first if there is no request yet."""
        with spark_session(java_home, keep_classes=keep_classes) as session:
            self.send({"up": True})
            if self._requests.empty() or keep_classes:
                warm_up(session)
            while (folders := self._requests.get()) is not None:
                found = check_runs(session, [Path(folder) for folder in folders], CHECKERS)
                raw = {run: [anomaly.to_dict() for anomaly in anomalies] for run, anomalies in found.items()}
                self.send({"found": raw})

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


def _childless() -> bool:
    """Reap the children that have ended; return True if none is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def main(arguments: Sequence[str]) -> NoReturn:
    """Answer the parent's requests until the last, then end this process."""
    java_home, folder = map(Path, arguments[:2])
    keep_classes = Path(arguments[3]) if arguments[2:3] == [KEEP_CLASSES] else None
    # Ctrl-C in a terminal is for the parent; signals to this group must reach only Java and us.
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    # A handler, not SIG_IGN: Java would inherit the ignored signal.
    signal.signal(signal.SIGTERM, lambda *_: None)
    tempfile.tempdir = str(folder)
    # Standard output carries only answers; anything that Java prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    process = SparkProcess(folder, _ARCHIVE_S_MAX if keep_classes else limits.PROCESS_END_S_MAX, answers)
    process.listen()
    code = 1
    try:
        process.serve(java_home, keep_classes)
        code = 0
    except UsageError as error:
        process.send({"usage": str(error)})
    except BaseException:
        process.send({"crash": traceback.format_exc()})
    finally:
        process.leave(code)


if __name__ == "__main__":
    main(sys.argv[1:])

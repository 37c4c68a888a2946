"""
Spark beside a suite that is being played: started and warmed up in a thread, ready when there is a run to check.

The start takes seconds of a processor, and a suite leaves one idle for as long, or mostly waits.
"""

from __future__ import annotations

import logging
import os
import queue
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from checkers import CHECKERS
from checkers.spark import check_runs, spark_session
from checkers.warm import warm_up
from harness import limits
from harness.model import Anomaly
from harness.process import TOKEN_VARIABLE, end, identity_of, tokens_alive
from harness.suite.interrupts import INTERRUPTS, LOOK_S

Found = dict[str, list[Anomaly]]


class SparkWorker:
    """Spark, down, on its way up, or up; `spark_worker` makes one and ends it."""

    def __init__(self, java_home: Path) -> None:
        self._java_home = java_home
        self._token = secrets.token_hex(6)
        ourselves = identity_of(os.getpid())
        assert ourselves is not None, "we are alive, so /proc must know us"
        self._since = ourselves.start
        self._asked: queue.SimpleQueue[Sequence[Path] | None] = queue.SimpleQueue()
        self._answered: queue.SimpleQueue[Found | BaseException] = queue.SimpleQueue()
        # In the main thread Spark would take Ctrl-C for itself.
        self._thread = threading.Thread(target=self._work, name="spark", daemon=True)

    def start(self) -> None:
        """Begin to start Spark, if nobody has; return at once."""
        if self._thread.ident is None:
            self._thread.start()

    def check(self, parquet_paths: Sequence[Path]) -> Found:
        """
        Check the runs, once; wait until Spark is up.

        Shapes:  as checkers.spark.check_runs.
        Raises:  what the start or the check raised; KeyboardInterrupt at once.
        """
        self.start()
        self._asked.put(parquet_paths)
        while True:
            try:
                answer = self._answered.get(timeout=LOOK_S)
            except queue.Empty:
                continue
            if isinstance(answer, BaseException):
                raise answer
            return answer

    def finish(self) -> None:
        """Let Spark end in its own time, and wait until it has."""
        self._asked.put(None)
        if self._thread.ident is not None:
            self._thread.join(2 * limits.PROCESS_END_S_MAX)
        self.end()

    def end(self) -> None:
        """End Spark wherever it stands: its processes at once, and the thread that then finds them gone."""
        self._asked.put(None)
        deadline = time.monotonic() + 2 * limits.PROCESS_END_S_MAX
        with _silence():
            while True:
                # Whoever was started meanwhile bears the token too.
                for bearer in tokens_alive(self._token, self._since):
                    end(bearer)
                if not self._thread.is_alive() or time.monotonic() > deadline:
                    return
                self._thread.join(LOOK_S)

    def _work(self) -> None:
        try:
            with spark_session(self._java_home, env={TOKEN_VARIABLE: self._token}) as session:
                if self._asked.empty():
                    warm_up(session)
                paths = self._asked.get()
                if paths is not None:
                    self._answered.put(check_runs(session, paths, CHECKERS))
        # Whoever asks is told; when nobody does, a Spark that failed is nobody's loss.
        except BaseException as error:
            self._answered.put(error)


@contextmanager
def spark_worker(java_home: Path) -> Iterator[SparkWorker]:
    """
    Have a Spark that starts when the block says so, while it does other things; an error in it ends Spark at once.

    Raises:  nothing of its own: what is wrong with Spark is told to whoever asks it to check.
    """
    worker = SparkWorker(java_home)
    try:
        yield worker
    except BaseException:
        with INTERRUPTS.shielded():
            worker.end()
        raise
    with INTERRUPTS.shielded():
        worker.finish()


@contextmanager
def _silence() -> Iterator[None]:
    """Log nothing: py4j prints a traceback when the Java that it talks to is killed."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)

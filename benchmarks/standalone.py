"""
A standalone cluster of Spark on loopback, started from the pip package: one master, and workers.

The Python of its executors has none of our packages, as on machines that know nothing of Fencepost. Tests and
measurements start it; whatever it started is ended with its block.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from checkers.spark.options import PYTHON, SparkOptions
from checkers.spark.session import wrap_java
from harness.cleanup.process import TOKEN_VARIABLE, bearers, end, identity_of, until
from harness.java import executable_of
from harness.model import FencepostError

START_S_MAX: Final = 120.0
END_S_MAX: Final = 60.0
_HOME: Final = Path(pyspark.__file__).parent
_LOOPBACK: Final = "127.0.0.1"
_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
# For Java that lives for seconds: one collector thread, and one compiler.
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standalone:
    """
    A cluster that is up.

    Attributes:
        master: its address, as Spark takes it.
        python: the Python of its executors.
    """

    master: str
    python: Path

    def options(self, *, short_lived: bool = True, **settings: str) -> SparkOptions:
        """
        Return the options with which it checks runs.

        Args:
            short_lived: have Java compile for seconds of work, not for minutes.
            settings: Spark's; in their names, `__` stands for a dot.
        """
        given = {name.replace("__", "."): value for name, value in settings.items()}
        # Executors find the driver on loopback, since they are on this machine.
        ours = {
            PYTHON: str(self.python),
            "spark.driver.host": _LOOPBACK,
            "spark.driver.memory": "512m",
            # By TCP each task of a Python waits 40 ms for an acknowledgement that the kernel delays.
            "spark.python.unix.domain.socket.enabled": "true",
        }
        if short_lived:
            ours |= {f"spark.{each}.extraJavaOptions": _SHORT_LIVED for each in ("driver", "executor")}
        return SparkOptions(master=self.master, settings={**ours, **given})


@contextmanager
def standalone(
    folder: Path, java_home: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g"
) -> Iterator[Standalone]:
    """
    Start a master and workers, and yield the cluster when all workers have registered.

    Args:
        folder: a new folder for their output, their files, and the Python of executors.
        java_home: of their Java.
        workers: how many.
        cores: of each.
        memory: of each, for its executors.

    Raises:
        FencepostError: one of them is not up in time; the text has the last lines that it printed.
    """
    folder.mkdir()
    token = secrets.token_hex(6)
    ourselves = identity_of(os.getpid())
    assert ourselves is not None, "we are alive, so /proc must know us"
    home = folder / "java"
    wrap_java(home, executable_of(java_home))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, program: str, *arguments: str) -> Path:
        output = folder / f"{name}.txt"
        with output.open("wb") as file:
            started.append(
                subprocess.Popen(
                    [_HOME / "bin" / "spark-class", program, "--host", _LOOPBACK, *_ports(), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    env=_environment(home, token),
                    cwd=folder,
                    process_group=0,
                )
            )
        return output

    try:
        master = _said(start("master", _MASTER), r"Starting Spark master at (\S+)")
        each = [
            *("--cores", str(cores)),
            *("--memory", memory),
        ]
        outputs = [
            start(f"worker-{number}", _WORKER, *each, "--work-dir", str(folder / f"work-{number}"), master)
            for number in range(workers)
        ]
        for output in outputs:
            _said(output, r"(Successfully registered) with master")
        yield Standalone(master=master, python=folder / "venv" / "bin" / "python")
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            process.wait(END_S_MAX)
        # Executors and their Pythons, which a worker ends too, but perhaps after itself.
        for left in bearers(token, ourselves.start):
            end(left)


def _ports() -> tuple[str, ...]:
    return ("--port", "0", "--webui-port", "0")


def _environment(java_home: Path, token: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(java_home),
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": _LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _SHORT_LIVED,
        TOKEN_VARIABLE: token,
    }


def _said(output: Path, pattern: str) -> str:
    """Wait until a process has printed something; return its first group."""
    found: list[str] = []

    def seen() -> bool:
        match = re.search(pattern, output.read_text(encoding="utf-8", errors="replace"))
        found.extend(match.groups() if match else ())
        return bool(found)

    if not until(seen, START_S_MAX):
        last = output.read_text(encoding="utf-8", errors="replace")[-500:]
        raise FencepostError(f"Spark's cluster: not up after {START_S_MAX:.0f} s; it printed {last!r}")
    return found[0]

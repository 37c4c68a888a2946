"""
The Java process of one client: a child of the run, which answers each question in a line.

It is started when it is needed first, and is ready once the library has started. Its folder has a file of hosts,
by which brokers are found at the names that the name server knows them by. It listens nowhere.
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Collection
from pathlib import Path
from typing import Final, Literal

from harness.clients.beside import Around
from harness.clients.jvm import Jvm
from harness.java import find_java
from harness.model import PreconditionError, UsageError
from targets.rocketmq.building import CLIENT, class_path
from targets.rocketmq.config import GROUP, HOSTS, LOGGING, host_of
from targets.rocketmq.services import NAMESRV
from targets.rocketmq.versions import NEWEST, RELEASES

# As other libraries it is of one release, whatever the brokers are: two runs differ by the brokers alone.
RELEASE: Final = RELEASES[NEWEST]
# A client has little to keep, and ends before it would pay to compile much of it.
_OPTIONS: Final = (
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:MaxDirectMemorySize=32m",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
)
_LOGGING_TEXT: Final = """\
<configuration>
  <appender name="OUT" class="org.apache.rocketmq.logging.ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5p %c{1} %m%n%ex{2}</pattern></encoder>
  </appender>
  <root level="ERROR"><appender-ref ref="OUT"/></root>
</configuration>
"""
_SHOWN: Final = 200

Role = Literal["producer", "consumer"]


class Process:
    """
    A client's process.

    Args:
        name: the client's.
        role: what it does of the two things that it can.
        around: what starts it, and whom it asks.
    """

    def __init__(self, name: str, role: Role, around: Around) -> None:
        self._name = name
        self._role = role
        self._around = around
        self._jvm: Jvm | None = None
        # Of the last question. The answer to an earlier one may come late.
        self._number = 0

    def ready(self) -> Jvm:
        """
        Start it unless it runs, and return it once its library has started; raise as `ask` does.

        That takes seconds on a busy machine: no time of a record's.
        """
        if self._jvm is None:
            self._jvm = started(self._name, self._role, self._around)
        self._jvm.await_ready()
        return self._jvm

    def ask(self, *words: object, within_s: float, expects: Collection[str]) -> list[str] | None:
        """
        Return the words of an answer, which begins with one of those expected; None if none comes in time.

        Raises:
            UsageError: it cannot be started.
            PreconditionError: it has ended by itself, or tells what is no answer.
        """
        jvm = self.ready()
        self._number += 1
        jvm.ask(str(self._number), *map(str, words))
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline and (told := jvm.hear(deadline)) is not None:
            number, *answer = told
            if not number.isdecimal() or int(number) > self._number or not answer or answer[0] not in expects:
                late = number.isdecimal() and int(number) < self._number
                if not late:
                    raise self.nonsense(told)
            elif int(number) == self._number:
                return answer
        return None

    def nonsense(self, told: Collection[str]) -> PreconditionError:
        """Return what a process did that tells what is no answer."""
        return PreconditionError(
            f"client {self._name}: its process told {' '.join(told)[:_SHOWN]!r}; expected an answer to question "
            f"{self._number}"
        )

    def close(self) -> None:
        """Let it end; what it still does is lost."""
        if self._jvm is not None:
            self._jvm.close()


def remark_in(word: str) -> str:
    """Return a remark in one line; raise ValueError if it is not Base64."""
    return " ".join(b64decode(word, validate=True).decode(errors="replace").split())[:_SHOWN]


def started(name: str, role: Role, around: Around) -> Jvm:
    """Start a client's process; raise UsageError if it cannot be."""
    children, servers = around.children, around.services.get(NAMESRV, ())
    if children is None or not servers:
        raise UsageError(f"client {name}: expected a run with a ledger, which has its process, and a name server")
    folder = children.folder / f"{name}-conf"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / HOSTS).write_text(hosts_of(around), encoding="utf-8")
    (folder / LOGGING).write_text(_LOGGING_TEXT, encoding="utf-8")
    jars = (folder, *class_path(RELEASE))
    argv = (*_argv(folder, jars), role, name, ";".join(map(str, servers)), GROUP)
    return Jvm(name, children, lambda *pipes: (*argv, *map(str, pipes)))


def hosts_of(around: Around) -> str:
    """Return the file by which a client finds each broker where it answers clients."""
    found = [f"{address.rpartition(':')[0]} {host_of(name)}" for name, address in around.nodes.items()]
    return "\n".join(["127.0.0.1 localhost", *found, ""])


def _argv(folder: Path, jars: Collection[Path]) -> tuple[str, ...]:
    return (
        str(find_java().executable),
        *_OPTIONS,
        f"-Duser.home={folder}",
        f"-Djdk.net.hosts.file={folder / HOSTS}",
        "-cp",
        ":".join(map(str, jars)),
        CLIENT,
    )

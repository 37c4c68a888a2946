"""A process that ended is explained by what ended it, and not only by how it then closed everything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.cleanup.ledger import Ledger
from harness.cluster.last_words import TAIL_LINES, end_of, explained
from harness.hosts.node import LOG_TAIL_CHARACTERS, NodeProcess
from harness.model import UsageError

CLOSING = "\n".join(
    f"12:00:0{number % 10},000 INFO [ThrottledChannelReaper]: Shutdown {number} (k)" for number in range(24)
)
# Of Apache Kafka 3.9.1 on a data directory of another cluster, shortened where it lists its configuration.
KAFKA = f"""\
12:00:00,001 INFO KafkaConfig values:
\tadvertised.listeners = PLAINTEXT://127.0.0.1:1
12:00:00,002 INFO starting (kafka.server.KafkaServer)
12:00:00,003 ERROR Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.KafkaServer)
kafka.common.InconsistentClusterIdException: The Cluster ID A is not the stored Some(B)
\tat kafka.server.KafkaServer.startup(KafkaServer.scala:266)
\tat kafka.Kafka.main(Kafka.scala)
Caused by: java.io.IOException: the disk
\tat java.base/x.Y.z(Y.java:1)
\t... 3 more
{CLOSING}
12:00:01,000 INFO shut down completed (kafka.server.KafkaServer)
12:00:01,001 ERROR Exiting Kafka due to fatal exception during startup. (kafka.Kafka$)
"""
OLD_KAFKA = f"""\
[2026-01-01 12:00:00,002] INFO starting (kafka.server.KafkaServer)
[2026-01-01 12:00:00,003] FATAL [Kafka Server 0], Fatal error during KafkaServer startup. (kafka.Server)
kafka.common.KafkaException: Socket server failed to bind to x:1: Permission denied.
\tat kafka.network.Acceptor.openServerSocket(SocketServer.scala:331)
{CLOSING}
"""
OURS = """\
2026-01-01 12:00:00,001 INFO fencepost.broker serving
2026-01-01 12:00:00,002 ERROR fencepost.broker the broker cannot go on
Traceback (most recent call last):
  File "driver.py", line 1, in post
    self._take(self._events.popleft())
    ~~~~~~~~~~^^^^^^^^^^^^^^^^^^^^^^
OSError: [Errno 28] No space left on device
2026-01-01 12:00:00,003 ERROR fencepost.broker ended: OSError(28, 'No space left on device')
"""
PYTHON = """\
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    1 / 0
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
    raise ValueError("zero")
ValueError: zero
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            KAFKA,
            "ERROR Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.KafkaServer) | "
            "kafka.common.InconsistentClusterIdException: The Cluster ID A is not the stored Some(B) | "
            "Caused by: java.io.IOException: the disk | … | ",
        ),
        (
            OLD_KAFKA,
            "startup. (kafka.Server) | kafka.common.KafkaException: Socket server failed",
        ),
        (OURS, "the broker cannot go on | OSError: [Errno 28] No space left on device | "),
        (PYTHON, "ZeroDivisionError: division by zero"),
        (
            f"Error occurred during initialization of VM\nToo small maximum heap\n{CLOSING}",
            "Error occurred during",
        ),
        (f"12:00:00,001 ERROR something (k)\n{CLOSING}", "12:00:00,001 ERROR something (k) | … | "),
    ],
)
def test_cause_stands_before_the_last_lines(text: str, cause: str) -> None:
    said = explained(text)
    assert cause in said
    assert "\n" not in said
    last = [line for line in text.splitlines() if line and not line.startswith(("\t", " "))][-TAIL_LINES:]
    assert said.endswith(last[-1])
    assert 1 == said.count(last[-1])


@pytest.mark.parametrize("before", [KAFKA, OLD_KAFKA, f"12:00:00,001 ERROR of before (k)\n{CLOSING}"])
def test_cause_of_a_life_before_explains_nothing(before: str) -> None:
    again = (
        "12:00:02,000 INFO starting (kafka.server.KafkaServer)\n12:00:02,001 ERROR Fatal error, the second (k)\n"
    )
    said = explained(f"{before}{again}{CLOSING}")
    assert said.startswith("12:00:02,001 ERROR Fatal error, the second (k) | … | ")


def test_our_broker_s_own_line_is_that_of_its_last_life() -> None:
    line = (
        "2026-01-01 12:00:09,003 ERROR fencepost.broker ended: '/d/t-0/x.log': a link; expected a regular file\n"
    )
    assert line.strip() == explained(OURS + line)


@pytest.mark.parametrize(("text", "said"), [("", "nothing"), ("\n\n", "nothing"), ("a\nb\nc\nd\n", "b | c | d")])
def test_what_names_no_cause_is_explained_by_its_last_lines(text: str, said: str) -> None:
    assert said == explained(text)


def test_lines_are_bounded() -> None:
    assert len(explained("ERROR " + "x" * 100_000)) < 700


def test_end_of_an_output_has_its_cause_above_if_that_is_cut_off() -> None:
    assert end_of(KAFKA, 300).startswith("12:00:00,003 ERROR Fatal error during KafkaServer startup.")
    assert end_of(KAFKA, 300).endswith(f"\n…\n{KAFKA[-300:]}")
    assert KAFKA == end_of(KAFKA, len(KAFKA))
    assert "plain" == end_of("plain", 300)


def test_process_that_ends_at_once_is_explained_by_its_cause(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "run")
    node = NodeProcess(name="A", ledger=ledger, log=tmp_path / "log.txt")
    many = "x" * LOG_TAIL_CHARACTERS
    code = f"import sys; print('12:00:00 FATAL the cause (k)'); print('12:00:01 INFO {many}'); sys.exit(3)"
    with pytest.raises(UsageError, match=r"(?s)ended at once .*said:\n12:00:00 FATAL the cause \(k\)"):
        node.start((sys.executable, "-S", "-c", code), env={}, cwd=tmp_path)
    ledger.close()

"""Whole runs of targets of one's own that misbehave: each is unknown, in time, and names target and part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from harness import limits
from harness.clients import plain_nodes
from harness.model import Verdict
from harness.run.result import Status
from tests.endings.command import left_of
from tests.kept import exhaustive
from tests.target.misbehaving import Room

# How long a part may take here that never returns; those that are limited are otherwise waited for much longer.
SOON: Final = 0.3
ELECT: Final = "elect B"
EXPIRE: Final = "expire A\nawait leader = B"
HANGS: Final = "threading.Event().wait()"


@dataclass(frozen=True, kw_only=True)
class Case:
    """
    A part that misbehaves.

    Attributes:
        code: what is put at the end of target.py.
        says: what the reason says after "target mylog, ".
        soon: the limit that ends it, by its module's name.
        long: whether it ends by limits of seconds.
    """

    code: str
    says: str
    steps: str = ""
    soon: Mapping[str, str] = field(default_factory=dict)
    long: bool = False


LOOK: Final = {"METADATA_LOOK_S_MAX": "harness", "METADATA_END_S_MAX": "harness"}
CALL: Final = {"TARGET_CALL_S_MAX": "harness"}
LOG: Final = {"LOG_CALL_S_MAX": "harness"}
LINE: Final = {"PRINTED_LINE_S_MAX": "harness"}
MODULES: Final = {"harness": limits, "clients": plain_nodes}


def part(of: str, method: str, arguments: str, *lines: str) -> str:
    """Return code that gives a class of the target another method."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"def other({arguments}):\n{body}\n\n\n{of}.{method} = other"


def looks(*lines: str) -> str:
    return "\n".join(["def looks(file):", *(f"    {line}" for line in lines)])


# Each node prints a line first.
GREETING: Final = """
class Greeting(MyLog):
    def launch(self, spec, protocol, rules):
        made = super().launch(spec, protocol, rules)
        return Launch(argv=("/bin/sh", "-c", f"echo hello; exec {' '.join(made.argv)}"), files=made.files)


TARGET = Greeting()
"""
CASES: Final = {
    "looks that never come": Case(
        code=looks(HANGS, "yield"), says="metadata: no look within 0.3 s; expected one at the beginning", soon=LOOK
    ),
    "looks without end": Case(
        code=looks("while True:", "    yield Look()"), says="metadata: more than 5000 looks in a second"
    ),
    "looks that end": Case(code=looks("yield Look()"), says="metadata: its looks ended"),
    "looks that raise": Case(code=looks("yield Look()", "1 / 0"), says="metadata: ZeroDivisionError"),
    "looks of nonsense": Case(code=looks("yield 'nonsense'"), says="metadata: 'nonsense'; expected a Look"),
    "metadata that raise": Case(
        code=part("MyLog", "metadata", "self, run", "1 / 0"), says="metadata: ZeroDivisionError: division by zero"
    ),
    "metadata that are none": Case(
        code=part("MyLog", "metadata", "self, run", "return 5"), says="metadata: 5; expected Metadata"
    ),
    "expire that hangs": Case(
        code=part("Asked", "expire", "self, name", HANGS),
        says="operator: expire: no answer within 0.3 s; expected one line",
        steps=EXPIRE,
        soon=CALL,
    ),
    "expire that loops": Case(
        code=part("Asked", "expire", "self, name", "while True:", "    pass"),
        says="operator: expire: no answer within 0.3 s",
        steps=EXPIRE,
        soon=CALL,
    ),
    "expire that raises": Case(
        code=part("Asked", "expire", "self, name", "raise SystemExit('gone')"),
        says="operator: expire: SystemExit: gone",
        steps=EXPIRE,
    ),
    "expire that returns nonsense": Case(
        code=part("Asked", "expire", "self, name", "return 7"), says="operator: expire: 7", steps=EXPIRE
    ),
    "elect that raises": Case(
        code=part("Asked", "elect", "self, topic, partition, name", "1 / 0"),
        says="operator: elect: ZeroDivisionError",
        steps=ELECT,
    ),
    "operator that raises": Case(
        code=part("Asked", "__init__", "self, run", "1 / 0"), says="operator: ZeroDivisionError"
    ),
    "record that raises": Case(
        code=part("Logs", "record", "self, line", "1 / 0"), says="logs: ZeroDivisionError: division by zero"
    ),
    "record that is nonsense": Case(code=part("Logs", "record", "self, line", "return 'a', 'b'"), says="logs: "),
    "reading of one record for ever": Case(
        code="\n".join(
            [
                "import itertools",
                "from harness.logs.record import Record",
                "from harness.logs.stream import RecordsReading",
                part(
                    "Logs",
                    "reading",
                    "self, node, topic, partition",
                    "same = itertools.repeat(Record(offset=0, epoch=1, value=b'x'))",
                    "return RecordsReading(topic, partition, same)",
                ),
            ]
        ),
        says="logs: ",
    ),
    "reading that never returns": Case(
        code=part("Logs", "reading", "self, node, topic, partition", HANGS),
        says="logs: no answer within 0.3 s; expected a reading of the log",
        soon=LOG,
    ),
    "partitions of nonsense": Case(
        code=part("Logs", "partitions", "self, node", "return 5"), says="logs: TypeError"
    ),
    "size that is always 0": Case(
        code=part("Wire", "size", "self, buffer, offset", "return 0"),
        says="wire: size said 0 of all that came",
        long=True,
    ),
    "size that is negative": Case(
        code=part("Wire", "size", "self, buffer, offset", "return -1"), says="wire: size said -1 of a frame"
    ),
    "size that is huge": Case(
        code=part("Wire", "size", "self, buffer, offset", "return 1 << 60"),
        says="wire: size said 1152921504606846976",
    ),
    "asks that raises": Case(
        code=part("Wire", "asks", "self, question", "1 / 0"), says="wire: read raised division by zero"
    ),
    "asks that loops": Case(
        code=part("Wire", "asks", "self, question", "while True:", "    pass"),
        says="wire: read did not return in time",
        long=True,
    ),
    "asks that is nonsense": Case(
        code=part("Wire", "asks", "self, question", "return 5, [(1, 2, 3)]"), says="wire: read said "
    ),
    "produce that hangs": Case(
        code=part("Client", "produce", "self, value", HANGS),
        says="clients: no answer of the client at ",
        soon={"HANGS_S": "clients"},
    ),
    "produce of nonsense": Case(
        code=part("Client", "produce", "self, value", "return 'x'"), says="clients: produce returned 'x'"
    ),
    "read of one record for ever": Case(
        code="\n".join(
            [
                "from harness.target.log_client import Found",
                part("Client", "read", "self, first", "while True:", "    yield Found(0, b'x')"),
            ]
        ),
        says="clients: a read from 0 brings Found(offset=0, value=b'x') after 1 records",
    ),
    "launch that raises": Case(
        code=part("MyLog", "launch", "self, *_", "1 / 0"), says="launch: ZeroDivisionError: division by zero"
    ),
    "launch that hangs": Case(
        code=part("MyLog", "launch", "self, *_", HANGS), says="launch: no answer within 0.3 s", soon=CALL
    ),
    "launch of nonsense": Case(
        code=part("MyLog", "launch", "self, *_", "return Launch(argv='python')"),
        says="launch: Launch(argv='python'",
    ),
    "launch of what is not there": Case(
        code=part("MyLog", "launch", "self, *_", "return Launch(argv=('/no/such/program',))"), says="launch: "
    ),
    "launch of what ends at once": Case(
        code=part("MyLog", "launch", "self, *_", "return Launch(argv=('/bin/false',))"), says="launch: "
    ),
    "pattern that is none": Case(
        code=f"MyLog.patterns = {{'truncate': '('}}\n{GREETING}", says="printed: error: missing ), unterminated"
    ),
    "printed that loops": Case(
        code=part("MyLog", "printed", "self, line", "while True:", "    pass") + f"\n{GREETING}",
        says="printed: no answer within 0.3 s; expected what 'hello' means, or None",
        soon=LINE,
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[exhaustive] if case.long else []) for name, case in CASES.items()]
)
def test_run_is_unknown_and_names_the_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    case = CASES[name]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for limit, module in case.soon.items():
        monkeypatch.setattr(MODULES[module], limit, SOON)
    result = Room(folder=tmp_path, code=case.code, steps=case.steps).play()
    assert (Verdict.UNKNOWN, Status.UNKNOWN) == (result.verdict, result.status)
    assert f"target mylog, {case.says}" in result.reason
    assert [] == left_of(tmp_path)

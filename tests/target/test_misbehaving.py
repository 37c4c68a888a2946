"""Whole runs of targets of one's own that misbehave: each is unknown, in time, and names target and part."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from harness import limits
from harness.cli.main import main
from harness.clients import plain_nodes
from harness.model import Verdict
from harness.run.result import Status
from harness.target.found import also_in
from tests.endings.command import left_of
from tests.kept import exhaustive
from tests.little_memory import printed_with_little_memory
from tests.needs import needs
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
        long: whether it ends by limits of seconds, or is much like another one.
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
        return Launch(argv=("/bin/sh", "-c", 'echo hello; exec "$0" "$@"', *made.argv), files=made.files)


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
        long=True,
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
        long=True,
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
    "record that is nonsense": Case(
        long=True, code=part("Logs", "record", "self, line", "return 'a', 'b'"), says="logs: "
    ),
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
        long=True,
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
        long=True,
        code=part("MyLog", "launch", "self, *_", HANGS),
        says="launch: no answer within 0.3 s",
        soon=CALL,
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


@needs("java")
def test_run_with_a_schedule_of_its_seed_ends_the_command_with_exit_code_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = Room(folder=tmp_path, code=part("Asked", "elect", "self, *_", "return 7")).make()
    command = ["run", "--target", "mylog:1", "--host", "local", "--seed", "4", "--nemesis", "elect"]
    ended = commanded(tmp_path, folder, *command, "--results", "results")
    assert 3 == ended.returncode, ended.stdout + ended.stderr
    assert "target mylog, operator: elect: 7; expected one line that says what was asked" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    assert [] == left_of(tmp_path)


def commanded(home: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command with the target of a folder."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("fencepost")), *words, "--targets", str(folder)],
        cwd=home,
        env={**os.environ, "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


# --- wrong use -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("code", "says"), [
    (part("MyLog", "rules", "self, *_", "1 / 0"), "rules: ZeroDivisionError: division by zero"),
    (part("MyLog", "rules", "self, *_", "return {'early': True}"), "rules: {'early': True}; expected a mapping"),
    (part("MyLog", "traits", "self, *_", "raise SystemExit(5)"), "traits: SystemExit: 5; expected Traits"),
    (part("MyLog", "traits", "self, *_", "return None"), "traits: None; expected Traits"),
    (part("MyLog", "protocols", "self", "1 / 0"), "protocols: ZeroDivisionError: division by zero"),
    (part("MyLog", "protocols", "self", "return ['1']"), "protocols: ['1']; expected a mapping of each version"),
    (part("MyLog", "protocols", "self", HANGS), "protocols: no answer within 0.3 s"),
    ("MyLog.abilities = property(lambda self: 1 / 0)", "part abilities: ZeroDivisionError: division by zero"),
])  # fmt: skip
def test_what_it_says_of_its_versions_wrongly_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: str, says: str
) -> None:
    monkeypatch.setattr(limits, "TARGET_CALL_S_MAX", SOON)
    folder = Room(folder=tmp_path, code=code).make()
    words = ["test", "mylog:1", "--targets", str(folder), "--results", str(tmp_path / "results")]
    assert 2 == main(words)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fencepost: target mylog")
    assert says in line


@pytest.mark.parametrize(("file", "says"), [
    ("", "no target; expected a package with TARGET"),
    ("raise RuntimeError('no')", "target.py does not import: RuntimeError: no"),
    ("raise SystemExit(0)", "target.py does not import: SystemExit: 0"),
])  # fmt: skip
def test_folder_that_is_no_target_is_one_line_and_the_one_beside_it_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str, says: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    if file:
        (wrong / "target.py").write_text(file, encoding="utf-8")
    assert 2 == main(["test", "wrong", "--targets", str(wrong)])
    (line,) = capsys.readouterr().err.splitlines()
    assert f"target wrong: {wrong}: {says}" in line
    with also_in([str(wrong)]):
        result = Room(folder=tmp_path).play()
    assert Status.AS_EXPECTED is result.status, result.reason


def test_second_target_of_a_name_is_one_line_and_none_of_them_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (Room(folder=tmp_path / name).make() for name in ("one", "two"))
    assert 2 == main(["test", "mylog:1", "--targets", str(one), "--targets", str(two)])
    (line,) = capsys.readouterr().err.splitlines()
    assert f"its name is also that of {one}" in line or f"its name is also that of {two}" in line


# --- memory ----------------------------------------------------------------------------------------------------
BOUNDED: Final = {
    "new looks without end": (
        looks(
            "for epoch in itertools.count(1):",
            "    state = PartitionTruth(leader='A', epoch=epoch, in_sync=('A',))",
            "    yield Look(states={('log', 0): state})",
        ),
        "metadata: more than 5000 looks in a second",
    ),
    "replicas without end": (
        part("Logs", "partitions", "self, node", "return ((f'log{each}', 0) for each in itertools.count())"),
        "logs: more, up to ('log250000', 0)",
    ),
    "new records without end": (
        "\n".join(
            [
                "from harness.logs.record import Record",
                "from harness.logs.stream import RecordsReading",
                part(
                    "Logs",
                    "reading",
                    "self, node, topic, partition",
                    "new = (Record(offset=each, epoch=1, value=b'x') for each in itertools.count())",
                    "return RecordsReading(topic, partition, new)",
                ),
            ]
        ),
        "logs: a batch at offset 200000, number 200001",
    ),
    "reads without end": (
        "\n".join(
            [
                "from harness.target.log_client import Found",
                part(
                    "Client",
                    "read",
                    "self, first",
                    "return (Found(each, b'x') for each in itertools.count(first))",
                ),
            ]
        ),
        "clients: reads bring more than 1000000 records",
    ),
}
PROGRAM: Final = """
from pathlib import Path

from tests.target.misbehaving import Room

print(Room(folder=Path({folder!r}), code={code!r}).play().reason)
"""


@exhaustive
@pytest.mark.parametrize("name", BOUNDED)
def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    code, says = BOUNDED[name]
    program = PROGRAM.format(folder=str(tmp_path), code=f"import itertools\n\n\n{code}")
    assert f"target mylog, {says}" in printed_with_little_memory(program)
    assert [] == left_of(tmp_path)

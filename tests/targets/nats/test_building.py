"""A release is built once from the pinned module, by whatever `go` there is, and is started only as built."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.model import UsageError
from targets.nats import building, commands
from targets.nats.building import bring, why_not
from targets.nats.target import TARGET
from targets.nats.versions import HASH, RELEASES, VERSIONS, Release, library, program_of

pytestmark = pytest.mark.slow

RELEASE = Release(name="0.0.1", checksum="h1:right")
MODULE = "github.com/nats-io/nats-server/v2@v0.0.1"
BUILT = "a server"

# Does what its plan says, and notes what it was asked.
GO = """\
import json, os, signal, sys
from pathlib import Path

here, argv = Path(__file__).parent, sys.argv[1:]
plan = json.loads((here / "plan.json").read_text())
flags, cgo = os.environ.get("GOFLAGS"), os.environ.get("CGO_ENABLED")
asked = {"argv": argv, "cwd": os.getcwd(), "flags": flags, "cgo": cgo}
with (here / "asked.jsonl").open("a") as file:
    file.write(json.dumps(asked) + "\\n")
step = plan["mod" if argv[0] == "mod" else "build"]
sys.stdout.write(step["says"])
sys.stderr.buffer.write(step["complains"].encode("latin-1"))
if step.get("makes") is not None:
    made = Path(argv[argv.index("-o") + 1])
    made.write_text(step["makes"])
    made.chmod(0o755)
if step.get("kills"):
    os.kill(os.getppid(), signal.SIGKILL)
sys.exit(step["code"])
"""


@dataclass
class Go:
    """A program `go`, alone on the PATH."""

    folder: Path
    module: Path
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.program = self.folder / "go"
        self.program.write_text(f"#!{sys.executable} -IS\n{GO}")
        self.program.chmod(0o755)
        self.plan()

    def plan(self, mod: dict[str, Any] | None = None, build: dict[str, Any] | None = None) -> None:
        """Say what it does, where that is not what a sound one does."""
        found = json.dumps({"Path": MODULE, "Dir": str(self.module), "Sum": RELEASE.checksum})
        sound = {"says": "", "complains": "", "code": 0}
        plan = {
            "mod": {**sound, "says": found, **(mod or {})},
            "build": {**sound, "makes": BUILT, **(build or {})},
        }
        (self.folder / "plan.json").write_text(json.dumps(plan))

    @property
    def asked(self) -> list[dict[str, Any]]:
        file = self.folder / "asked.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def brings(self, *releases: Release) -> None:
        bring(releases or (RELEASE,), self.said.append)

    def refuses(self) -> str:
        """Return why it brings nothing, which is one line; nothing is kept then."""
        with pytest.raises(UsageError) as raised:
            self.brings()
        assert [] == [path for path in library().rglob("*") if path.name != "fetch.lock"]
        text = str(raised.value)
        assert 1 == len(text.splitlines())
        return text


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    """Return a `go` that builds, and an empty cache."""
    for name in ("bin", "module"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    return Go(tmp_path / "bin", tmp_path / "module")


# --- what is brought -------------------------------------------------------------------------------------------
def test_program_is_built_in_the_module_s_folder_and_its_hash_is_kept(go: Go) -> None:
    go.brings()
    program = program_of(RELEASE, library())
    assert (BUILT, True) == (program.read_text(), os.access(program, os.X_OK))
    assert f"{hashlib.sha256(BUILT.encode()).hexdigest()}\n" == program.with_name(HASH).read_text()
    assert "" == why_not(RELEASE, library())
    downloaded, built = go.asked
    assert ["mod", "download", "-json", MODULE] == downloaded["argv"]
    assert (str(go.module), "", "0") == (built["cwd"], built["flags"], built["cgo"])
    # Nothing that the module does not pin is taken, and the program has no path of this machine.
    assert {"build", "-mod=readonly", "-trimpath", "-buildvcs=false", "."} < {*built["argv"]}
    assert ["0.0.1: builds github.com/nats-io/nats-server/v2@v0.0.1; a minute or two"] == go.said


def test_library_has_only_the_program_its_hash_and_the_lock_afterwards(go: Go) -> None:
    go.brings()
    files = {path.relative_to(library()) for path in library().rglob("*") if path.is_file()}
    assert {Path("fetch.lock"), Path("0.0.1/nats-server"), Path(f"0.0.1/{HASH}")} == files


def test_second_fetch_that_finds_all_there_asks_go_for_nothing(go: Go) -> None:
    go.brings()
    before = len(go.asked)
    go.brings()
    assert before == len(go.asked)
    assert f"0.0.1: {program_of(RELEASE, library())} is there, as it was built" == go.said[-1]
    # Nor does it need one.
    go.program.unlink()
    go.brings()


def test_releases_are_brought_one_after_the_other(go: Go) -> None:
    other = Release(name="0.0.2", checksum=RELEASE.checksum)
    go.brings(RELEASE, other)
    assert ("", "") == (why_not(RELEASE, library()), why_not(other, library()))
    assert ["0.0.1", "0.0.2"] == [line.partition(":")[0] for line in go.said]


# --- what cannot be started ------------------------------------------------------------------------------------
def test_program_that_is_not_there_is_named_with_the_command_that_builds_it(go: Go) -> None:
    program = program_of(RELEASE, library())
    assert f"{program} is not there; `fencepost fetch nats:0.0.1` builds it" == why_not(RELEASE, library())


@pytest.mark.parametrize("changed", ["a servant", "a serveR", ""])
def test_program_that_was_changed_is_refused_with_the_command_and_built_again(go: Go, changed: str) -> None:
    go.brings()
    program = program_of(RELEASE, library())
    program.write_text(changed)
    os.utime(program, ns=(1, 1))
    found, expected = (hashlib.sha256(text.encode()).hexdigest() for text in (changed, BUILT))
    said = f"{program} has sha256 {found}, not {expected}; `fencepost fetch nats:0.0.1` builds it"
    assert said == why_not(RELEASE, library())
    go.brings()
    assert (BUILT, "") == (program.read_text(), why_not(RELEASE, library()))


@pytest.mark.parametrize(
    ("program", "kept"),
    [(BUILT, None), (BUILT[:3], hashlib.sha256(BUILT.encode()).hexdigest()), (BUILT, ""), (BUILT, "\xff")],
)
def test_half_of_what_a_build_leaves_is_refused_and_built_again(go: Go, program: str, kept: str | None) -> None:
    place = program_of(RELEASE, library())
    place.parent.mkdir(parents=True)
    place.write_text(program)
    if kept is not None:
        place.with_name(HASH).write_text(kept)
    why = why_not(RELEASE, library())
    assert f"{place} has sha256 " in why
    assert ("not one of a build" in why) is (not kept)
    go.brings()
    assert (BUILT, "") == (place.read_text(), why_not(RELEASE, library()))


def test_fetch_that_was_killed_in_a_build_leaves_no_program_and_the_next_one_builds(go: Go) -> None:
    go.plan(build={"makes": BUILT[:3], "kills": True})
    code = "from targets.nats.building import bring\nfrom targets.nats.versions import Release\n"
    code += f"bring([{RELEASE!r}], print)"
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert -9 == killed.returncode, killed.stderr
    assert "is not there" in why_not(RELEASE, library())
    go.plan()
    go.brings()
    assert "" == why_not(RELEASE, library())


def test_other_file_in_the_program_s_place_is_no_program(go: Go) -> None:
    place = program_of(RELEASE, library())
    place.mkdir(parents=True)
    assert "is not there" in why_not(RELEASE, library())
    go.brings()
    assert "" == why_not(RELEASE, library())


# --- what goes wrong -------------------------------------------------------------------------------------------
def test_machine_without_go_is_told_what_to_install(go: Go) -> None:
    go.program.unlink()
    said = "go: not on the PATH; expected Go 1.26 or later, from https://go.dev/dl or a package `golang`"
    assert said == go.refuses()


def test_go_that_is_no_program_is_named(go: Go) -> None:
    go.program.write_bytes(b"\x7fELF, but not much of it")
    assert f"{go.program}: Exec format error; expected Go 1.26 or later" == go.refuses()


def test_module_with_another_checksum_is_not_built(go: Go) -> None:
    go.plan(mod={"says": json.dumps({"Dir": str(go.module), "Sum": "h1:wrong"})})
    assert f"{MODULE}: checksum h1:wrong; expected h1:right; not built" == go.refuses()
    assert ["mod"] == [each["argv"][0] for each in go.asked]


@pytest.mark.parametrize(
    ("mod", "why"),
    [
        ({"says": json.dumps({"Error": "no route\n to host"}), "code": 1}, "no route to host"),
        ({"says": json.dumps({"Error": "x" * 9999}), "code": 1}, "x" * 400),
        ({"says": "no JSON", "complains": "go: no\n network", "code": 1}, "go: no network"),
        ({"says": "", "complains": "y" * 9999, "code": 1}, "y" * 400),
        ({"says": "", "complains": "caf\xe9", "code": 1}, "caf\ufffd"),
        ({"says": "[]", "complains": "odd"}, "odd"),
        ({"says": "3", "complains": "odd"}, "odd"),
        ({"says": "{}"}, "it said nothing"),
    ],
)
def test_module_that_does_not_come_is_one_line_with_the_reason(go: Go, mod: dict[str, Any], why: str) -> None:
    go.plan(mod=mod)
    assert f"{MODULE}: {why}; expected the module: try again with a network" == go.refuses()


@pytest.mark.parametrize(
    ("build", "end"),
    [
        ({"makes": None, "complains": "# raft\nraft.go:7: no\n", "code": 1}, "# raft raft.go:7: no"),
        ({"complains": "late", "code": 2}, "late"),
        ({"makes": None, "complains": "z" * 9999 + "the end"}, "z" * 393 + "the end"),
        ({"makes": None}, "it said nothing"),
    ],
)
def test_build_that_fails_is_one_line_with_the_end_of_what_go_said(
    go: Go, build: dict[str, Any], end: str
) -> None:
    go.plan(build=build)
    assert f"{go.program} build of {MODULE}: {end}; expected a program" == go.refuses()


def test_go_that_takes_too_long_says_that_the_next_fetch_goes_on(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_DOWNLOAD_S_MAX", 0.0)
    assert f"{go.program} mod download: not done within 0 s; try again, it goes on" == go.refuses()


def test_cache_that_cannot_be_written_is_named(go: Go, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(UsageError, match=r"cache/fencepost/nats: Not a directory; expected a cache that can be"):
        go.brings()


# --- the command -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("versions", "names"),
    [
        ([], [*RELEASES]),
        (["2.15.3"], ["2.15.3"]),
        (["2.15.3-always", "2.12.1", "2.15.3"], ["2.15.3", "2.12.1"]),
    ],
)
def test_fetch_brings_the_release_of_each_version_once(
    monkeypatch: pytest.MonkeyPatch, versions: Sequence[str], names: Sequence[str]
) -> None:
    brought: list[str] = []
    monkeypatch.setattr(building, "bring", lambda releases, _say: brought.extend(each.name for each in releases))
    commands.bring(versions, brought.append)
    assert names == brought


def test_fetch_of_another_version_is_refused_with_those_that_there_are() -> None:
    says = r"unknown version of NATS '2\.9\.9': expected one of 2\.12\.1, 2\.12\.1-always, "
    with pytest.raises(UsageError, match=says):
        commands.bring(["2.9.9"], print)


def test_usual_versions_are_the_newest_release_with_both_settings() -> None:
    assert [*VERSIONS][-2:] == [*commands.USUAL_VERSIONS]


def test_target_requires_the_program_and_says_which_target(go: Go) -> None:
    rules = TARGET.rules("2.15.3-always", ())
    with pytest.raises(UsageError) as raised:
        TARGET.require(rules)
    release = RELEASES["2.15.3"]
    said = f"{program_of(release, library())} is not there; `fencepost fetch nats:2.15.3` builds it"
    assert f"nats: {said}" == str(raised.value)
    go.plan(mod={"says": json.dumps({"Dir": str(go.module), "Sum": release.checksum})})
    go.brings(release)
    TARGET.require(rules)

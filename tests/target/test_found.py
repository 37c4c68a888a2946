"""Targets are found: below targets/, by entry points, and in folders of one's own; wrong ones harm no other."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model import UsageError
from harness.target import found
from harness.target.found import RESERVED, VARIABLE, again, also_in, entry, target
from tests.target.own import TARGET, make_target

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(VARIABLE, raising=False)
    yield
    for name in [name for name in sys.modules if name.startswith(f"{found.NAMESPACE}.")]:
        del sys.modules[name]


def test_targets_of_the_package_are_found_and_none_is_imported() -> None:
    program = "import sys; from harness.target.found import found; print(sorted(found())); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    names, modules = done.stdout.splitlines()
    assert "['broker', 'fluss', 'kafka', 'nats', 'rocketmq']" == names
    assert [] == [name for name in modules.split() if name.startswith("targets.")]


def test_target_of_ones_own_is_found_in_its_folder_in_one_of_several_and_in_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = make_target(tmp_path / "some" / "mine"), make_target(tmp_path / "some" / "other_target")
    (other / "target.py").write_text(TARGET.replace("{name!r}", "'other'"), encoding="utf-8")
    with also_in([str(mine)]):
        assert "mine" == target("mine").name
        assert "other" not in found.found()
        assert ["--targets", str(mine)] == again("mine")
    with also_in([str(mine.parent)]):
        assert ("mine", "other") == (target("mine").name, target("other").name)
        assert ["--targets", str(mine.parent)] == again("other")
    assert "mine" not in found.found()
    monkeypatch.setenv(VARIABLE, f"{mine}:{other}")
    assert {"mine", "other", "broker", "fluss", "kafka", "nats", "rocketmq"} == found.found().keys()
    assert [] == again("broker")


def test_package_without_a_module_target_has_it_in_its_init_and_imports_its_own_modules(tmp_path: Path) -> None:
    text = "from .part import Base\n\nclass Mine(Base):\n    name = {name!r}\n\nTARGET = Mine()\n"
    folder = make_target(tmp_path / "inner", text, "__init__.py")
    (folder / "part.py").write_text("from targets.broker_target.target import BrokerTarget as Base\n")
    with also_in([str(folder)]):
        assert "inner" == target("inner").name


def test_folder_that_is_changed_to_another_of_its_name_is_imported_anew(tmp_path: Path) -> None:
    one, two = (make_target(tmp_path / place / "mine") for place in ("one", "two"))
    with also_in([str(one)]):
        first = target("mine")
    with also_in([str(two)]):
        assert first.__class__ is not target("mine").__class__
    with also_in([str(one)]):
        assert first is target("mine")


def test_entry_point_of_an_installed_package_names_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_target(tmp_path / "pointed", file="__init__.py")
    info = tmp_path / "pointed-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pointed\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[fencepost.targets]\npointed = pointed\ngone = not_there\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    found._found.cache_clear()
    try:
        assert "pointed" == target("pointed").name
        assert "entry point pointed = pointed of pointed" == entry("pointed").where
        with pytest.raises(
            UsageError, match="entry point gone = not_there of pointed: its module does not import"
        ):
            target("gone")
    finally:
        found._found.cache_clear()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("mine", "import nothing_such\n", "target.py does not import: ModuleNotFoundError: No module named 'noth"),
        ("mine", "TARGET = \n", "target.py does not import: SyntaxError"),
        ("mine", "raise SystemExit(3)\n", "target.py does not import: SystemExit: 3"),
        ("mine", "x = 1\n", "no TARGET in target.py; expected the target there"),
        ("mine", TARGET.replace("{name!r}", "'yours'"), "part name: 'yours'; expected 'mine', as the folder says"),
        (
            "mine",
            "class T:\n    name = 'mine'\nTARGET = T()\n",
            "part words: not there; expected it, as Target",
        ),
        ("quick", TARGET, "name 'quick': `make test-quick` is taken; expected another name: rename the folder"),
        ("Mine", TARGET, "name 'Mine'; expected small letters, digits, - and _, a letter first"),
    ],
)
def test_wrong_target_is_told_with_its_folder_and_the_others_work(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    folder = make_target(tmp_path / name, text)
    make_target(tmp_path / "sound")
    with also_in([str(tmp_path)]):
        with pytest.raises(UsageError, match=re.escape(f"target {name}: {folder}: {says}")):
            target(name)
        assert says in entry(name).why_not()
        assert ("sound", "kafka") == (target("sound").name, target("kafka").name)


def test_two_of_one_name_are_refused_and_the_same_folder_twice_is_one(tmp_path: Path) -> None:
    one, two = (make_target(tmp_path / place / "mine") for place in ("one", "two"))
    with (
        also_in([str(one), str(two)]),
        pytest.raises(UsageError, match=re.escape(f"{one}: its name is also that of {two}; expected one")),
    ):
        target("mine")
    with also_in([str(one), str(one.parent)]):
        assert "mine" == target("mine").name
    kafka = make_target(tmp_path / "kafka")
    with also_in([str(kafka)]), pytest.raises(UsageError, match=f"also that of {kafka}"):
        target("kafka")


def test_folder_without_a_target_is_told_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes" / "inner").mkdir(parents=True)
    with (
        also_in([str(tmp_path / "notes")]),
        pytest.raises(UsageError, match=r"notes: no target; expected a package with TARGET in __init__"),
    ):
        target("notes")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="gone: no such folder; no target"):
        target("gone")
    assert "broker" == target("broker").name


@pytest.mark.parametrize("place", ["gone", "a:b", ""])
def test_option_names_a_folder_that_is_there(tmp_path: Path, place: str) -> None:
    (tmp_path / "a:b").mkdir()
    with pytest.raises(UsageError, match="option --targets"), also_in([str(tmp_path / place) if place else ""]):
        pytest.fail("it was taken")


def test_unknown_target_is_told_with_all_that_are_known() -> None:
    with pytest.raises(
        UsageError,
        match=r"unknown target .brokr.: expected one of broker, .*, rocketmq. Did you mean .broker",
    ):
        target("brokr")


def test_names_that_the_makefile_has_are_reserved() -> None:
    made = set(re.findall(r"^test-([a-z0-9]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert made - found.found().keys() == RESERVED

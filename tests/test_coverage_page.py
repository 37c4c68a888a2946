"""The page of what shows what names only tests that are there, and leaves no core module's tests out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "coverage.md"
TESTS = ROOT / "tests" / "broker"
NAMED = re.compile(r"`([\w/]+\.py)::([\w:]+)`")


def named(page: str) -> list[tuple[str, str]]:
    """File below tests/broker and test of every test that a page names."""
    return [(found[1], found[2]) for found in NAMED.finditer(page)]


def missing(page: str) -> list[str]:
    """The tests that a page names and that are not there."""
    there: dict[str, set[str]] = {}
    for file, _ in named(page):
        if file not in there:
            path = TESTS / file
            there[file] = defined(path.read_text(encoding="utf-8")) if path.is_file() else set()
    return [f"{file}::{test}" for file, test in named(page) if test not in there[file]]


def defined(source: str) -> set[str]:
    """The tests that a module defines, those of classes with the class before them."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)}
    return {name for name in found if name.split("::")[-1].startswith("test_")}


def test_every_test_that_the_page_names_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert missing(page) == []
    assert len(named(page)) > 150


def test_every_row_of_the_page_names_a_test() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    bare = [row for row in rows[1:] if not row.startswith("| **") and not named(row)]
    assert bare == []


@pytest.mark.parametrize("step", ["1", "2", "3", "4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7.1"])
def test_every_step_of_kip_101_has_a_row(step: str) -> None:
    """Source: KIP-101, Steps."""
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if re.search(rf"\| KIP-101 (\d, )?{re.escape(step)}[ ,|]", row)]


def test_test_that_is_not_there_is_found_missing() -> None:
    names = ["core/test_rules.py::test_nothing", "core/test_gone.py::test_a", "core/test_rules.py::difference"]
    assert names == missing("| x | y | " + " ".join(f"`{name}`" for name in names) + " |")


def test_tests_of_classes_are_told_with_their_class() -> None:
    source = "def test_a(): ...\ndef b(): ...\nclass C:\n    def test_d(self): ...\n    def e(self): ...\n"
    assert defined(source) == {"test_a", "C::test_d"}

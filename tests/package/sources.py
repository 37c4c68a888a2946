"""The product's packages as their sources say: what each module imports, when it is imported and when it runs."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("checkers", "harness", "nemesis", "targets", "workloads")
# In a checkout alone.
LEFT_OUT: Final = "harness/docs/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """
    A module's imports.

    Attributes:
        first: what it imports while it is imported itself.
        later: what its functions import.
        words: its strings, among them names of modules that are imported on demand.
    """

    first: frozenset[str]
    later: frozenset[str]
    words: frozenset[str]


def project() -> Mapping[str, Any]:
    """Return the table [project] of pyproject.toml."""
    table: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def files() -> list[Path]:
    """Return the files that users get, sorted, relative to the root."""
    found = (path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*"))
    return sorted(
        path
        for path in found
        if (ROOT / path).is_file() and "__pycache__" not in path.parts and not str(path).startswith(LEFT_OUT)
    )


@cache
def modules() -> Mapping[str, Module]:
    """Return every module that users get, by its name."""
    return {_name(path): _read(ROOT / path) for path in files() if path.suffix == ".py"}


def third_party(names: Iterator[str] | frozenset[str]) -> set[str]:
    """Return the top-level names of what is neither ours nor Python's."""
    tops = {name.partition(".")[0] for name in names}
    return {top for top in tops if top not in PACKAGES and top not in sys.stdlib_module_names}


def needing(tops: set[str]) -> set[str]:
    """Return the modules that import one of these packages, or such a module, while they are imported."""
    found = {name for name, module in modules().items() if third_party(module.first) & tops}
    while True:
        more = {name for name, module in modules().items() if module.first & found} - found
        if not more:
            return found
        found |= more


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(path: Path) -> Module:
    first, later, words = set[str](), set[str](), set[str]()
    left: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while left:
        node, inside = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            (later if inside else first).update(_imported(node))
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                words.add(node.value)
        elif not _is_for_types(node):
            inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            left += [(child, inside) for child in ast.iter_child_nodes(node)]
    return Module(first=frozenset(first), later=frozenset(later), words=frozenset(words))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield what a statement imports; of a package also each name, which may be a module of it."""
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    else:
        assert node.level == 0 and node.module, "ours are absolute"
        yield node.module
        yield from (f"{node.module}.{each.name}" for each in node.names)

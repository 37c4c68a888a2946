"""
Print docs/coverage.md: the citations of the tests, from the `Source:` lines of their docstrings.

A citation names a document and, if it has sections, a section; citations are separated by semicolons. Text in
quotes, in parentheses or after a colon describes the section and is not printed.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.docs import markdown

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = "tests"

# A docstring's `Source:` entry, up to the next blank line, the next entry or the end.
_ENTRY: Final = re.compile(r"^Source:\s*(.*?)(?=\n\s*\n|\n[A-Z]\w+:|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED: Final = re.compile(r'"[^"]*"')
V3: Final = "Kafka Replication Design V3"
_TLA: Final = "TLA+ specification"
_MENTION: Final = re.compile(rf"KIP-\d+|KAFKA-\d+|{V3}|{re.escape(_TLA)}|\b[A-Z]\w+Test\b")
# The end of a section; a dot within a name or a number does not end it.
_STOP: Final = re.compile(r"[:;(]|\.(?=\s|$)")
# The sections of KIP-101 that a citation may name; any other text after its name is prose.
_PART: Final = re.compile(
    r"(?:steps? )?(?P<step>\d(?:\.\d)*)|(?:the )?(?P<footnote>footnote to step 3)|"
    r"(?P<section>(?:Scenario|Request Semantics) \d|Maintaining the LeaderEpochSequenceFile|"
    r"[A-Z][a-z]+(?: [A-Z][a-z]+)*|returning leaders|"
    r"compatibility|migration)"
)

KIP_101: Final = "KIP-101"
OTHER_KIPS: Final = "Other KIPs"
ISSUES: Final = "Issues of Apache Kafka"
THEIR_TESTS: Final = "Apache Kafka's tests"
REST: Final = "Code, documentation, and what was found here"
DOCUMENTS: Final = (KIP_101, V3, OTHER_KIPS, ISSUES, THEIR_TESTS, _TLA, REST)


@dataclass(frozen=True, slots=True, order=True)
class Citation:
    """A test, or a module of tests, and the section of a document that it cites."""

    document: str
    section: str
    test: str


def coverage() -> str:
    """Return docs/coverage.md: every section that a test cites, by document, with the tests that cite it."""
    found = citations(ROOT / TESTS)
    parts = []
    for document in DOCUMENTS:
        rows = sorted({each for each in found if each.document == document}, key=_order)
        parts += [
            f"## {document}",
            markdown.table(("cites", "test"), [(e.section or "as a whole", f"`{e.test}`") for e in rows]),
        ]
    return markdown.page(
        "Test coverage",
        "the `Source:` lines in the docstrings of tests/",
        "The tests that verify a statement of a document; a test without a source verifies a promise of our own.\n"
        "Paths are relative to `tests/`; a path without a test's name cites for all tests of the file.\n"
        "Tests of Apache Kafka that do not apply here: [protocol.md](protocol.md#test-vectors-of-apache-kafka).",
        *parts,
    )


def citations(folder: Path) -> list[Citation]:
    """Return the citations of the tests below a folder."""
    return [
        Citation(document, section, f"{path.relative_to(folder).as_posix()}{name}")
        for path in sorted(folder.rglob("*.py"))
        if "Source:" in (text := path.read_text(encoding="utf-8"))
        for name, docstring in _docstrings(ast.parse(text))
        for entry in _ENTRY.findall(inspect.cleandoc(docstring))
        for document, section in cited(" ".join(entry.split()))
    ]


def _docstrings(node: ast.Module | ast.ClassDef, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield "::name" and docstring of a module, its classes and its functions."""
    yield before, ast.get_docstring(node) or ""
    for inner in node.body:
        if isinstance(inner, ast.ClassDef):
            yield from _docstrings(inner, f"{before}::{inner.name}")
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{before}::{inner.name}", ast.get_docstring(inner) or ""


def cited(entry: str) -> list[tuple[str, str]]:
    """Return the (document, section) pairs that a `Source:` entry names."""
    bare = _QUOTED.sub("", entry)
    found = []
    mentions = list(_MENTION.finditer(bare))
    ends = [*(mention.start() for mention in mentions[1:]), len(bare)]
    for mention, end in zip(mentions, ends, strict=False):
        rest = bare[mention.end() : end]
        found += _sections(mention[0], _upto_stop(rest))
    return found or [(REST, _upto_stop(bare))]


def _sections(name: str, rest: str) -> list[tuple[str, str]]:
    if name == KIP_101:
        named = [found for part in re.split(r", | and ", rest) if (found := _PART.fullmatch(part.strip()))]
        steps = [f"step {part['step']}" if part["step"] else part["footnote"] or part["section"] for part in named]
        return [(KIP_101, section) for section in steps or [""]]
    if name.startswith("KIP-"):
        return [(OTHER_KIPS, name)]
    if name.startswith("KAFKA-"):
        return [(ISSUES, name)]
    if name == V3:
        return [(V3, point) for point in _points(re.sub(r" and .*", "", rest) if "Kafka" in rest else rest)]
    return [(name, "")] if name == _TLA else [(THEIR_TESTS, name)]


def _points(text: str) -> list[str]:
    """Return the points of V3 that a citation names: "D 1 and 2" is D 1 and D 2."""
    found: list[str] = []
    for part in re.split(r",? and |, ", text):
        letter = re.match(r"\D*", found[-1])[0] if found and part[:1].isdigit() else ""  # type: ignore[index]
        found.append(letter + part)
    return found


def _upto_stop(text: str) -> str:
    found = _STOP.search(text)
    return (text[: found.start()] if found else text).strip(" ,.")


def _order(citation: Citation) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key in which numbers within a section are compared as numbers."""
    words = re.findall(r"\d+|\D+", citation.section)
    return [(int(word), "") if word.isdigit() else (-1, word) for word in words], citation.test

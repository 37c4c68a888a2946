"""
Checks of the documentation pages: links and names resolve; every dependency and plug-in has its line.

Trees and complaints have the form described in tests/tidy.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from tests.tidy import Tree

_LINK: Final = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_NAMED: Final = re.compile(r"`([\w.-]+/[\w./-]*|[\w-]+\.(?:py|toml|in|md|txt))`")
_MAKE: Final = re.compile(r"`make ([a-z][a-z0-9-]*)(?![a-z0-9-]|NAME)")
_RULE: Final = re.compile(r"RULES=\"?([a-z_]+)=|--rule ([a-z_]+)=")


def pages(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each of the project's own pages."""
    return ((path, text) for path, text in tree.items() if path.endswith(".md") and not path.startswith("tests/"))


def dead_links(tree: Tree) -> list[str]:
    """Find links to untracked files and to missing headings."""
    found = []
    for path, text in pages(tree):
        for target in _LINK.findall(_FENCE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            place = _joined(path, name) if name else path
            if place not in tree and not any(other.startswith(f"{place}/") for other in tree):
                found.append(f"{path}: link to {target}; expected a tracked file")
            elif anchor and anchor not in _anchors(tree.get(place, "")):
                found.append(
                    f"{path}: link to {target}; expected one of {', '.join(_anchors(tree.get(place, '')))}"
                )
    return found


def _joined(page: str, name: str) -> str:
    parts: list[str] = []
    for part in (*PurePosixPath(page).parent.parts, *PurePosixPath(name).parts):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _anchors(text: str) -> list[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads]


def dead_names(tree: Tree, made_later: Iterable[str] = ()) -> list[str]:
    """
    Find files, make targets and broker rules that a page names and that do not exist.

    A path, or a make target, that contains NAME is a placeholder and is not checked.

    Args:
        tree: the tracked files.
        made_later: prefixes of the paths that a run or an installation creates.
    """
    folders = {str(parent) for path in tree for parent in PurePosixPath(path).parents}
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", tree.get("Makefile", ""), re.MULTILINE))
    rules = set(
        re.findall(r"^    ([a-z_]+): \w+ = field\(", tree.get("targets/broker/core/rules.py", ""), re.MULTILINE)
    )
    found = []
    for path, text in pages(tree):
        for name in _NAMED.findall(text):
            known = {name, name.rstrip("/"), _joined(path, name.rstrip("/"))}
            ours = name.split("/")[0] in {each.split("/")[0] for each in tree}
            later = "NAME" in name or any(name.startswith(begin) for begin in made_later)
            if ours and not later and not known & (tree.keys() | folders):
                found.append(f"{path}: names {name}; expected a tracked file")
        found += [f"{path}: names make {t}; expected a target" for t in _MAKE.findall(text) if t not in targets]
        named = {a or b for a, b in _RULE.findall(text)}
        found += [f"{path}: names rule {rule}; expected a rule of the broker" for rule in sorted(named - rules)]
    return found


def unexplained(tree: Tree) -> list[str]:
    """Find requirements without a line in docs/dependencies.md, and lines there without a requirement."""
    wanted = {
        re.split(r"[<>=!~; ]", line)[0].lower().replace("_", "-")
        for name in ("requirements.in", "requirements.txt", "requirements-java.txt", "requirements-bench.txt")
        for line in tree.get(name, "").splitlines()
        if line and not line.startswith("#")
    }
    said = {
        name.lower().replace("_", "-")
        for name in re.findall(r"^\| `([^`]+)` ", tree["docs/dependencies.md"], re.M)
    }
    missing = [
        f"docs/dependencies.md: no line for {name}; expected why it is here" for name in sorted(wanted - said)
    ]
    return missing + [f"docs/dependencies.md: {name}; nothing pins it" for name in sorted(said - wanted)]


def plug_ins(tree: Tree, tables: Mapping[str, tuple[Iterable[str], str]]) -> list[str]:
    """
    Find plug-ins that their page does not name, or that no test names.

    Args:
        tree: the tracked files.
        tables: table name -> (names of its plug-ins, the page that has a line for each).
    """
    tests = "\n".join(text for path, text in tree.items() if path.startswith("tests/") and path.endswith(".py"))
    found = []
    for table, (names, page) in tables.items():
        for name in names:
            if not re.search(rf"`{re.escape(name)}`|^## {re.escape(name)}$", tree.get(page, ""), re.MULTILINE):
                found.append(f"{table}: {name} has no line in {page}; expected one")
            if not re.search(rf"[\"' ,]{re.escape(name)}[\"' ,:]", tests):
                found.append(f"{table}: no test names {name}; expected one")
    return found

"""
Checks that ruff does not offer: each reads the tree as text and returns one complaint for each fault.

A tree maps a tracked file's path to its text; a complaint reads "path:line: what; what was expected".

Source:  the project's house style; TigerBeetle's tidy tests.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

Tree: TypeAlias = Mapping[str, str]

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("harness", "nemesis", "workloads", "checkers", "targets")
LINES_MAX: Final = 400
BLOB_BYTES_MAX: Final = 300_000
# The line in a module's docstring that says why the module is longer.
LENGTH_REASON: Final = "Length:"

# What harness/events/older.py, harness/hosts/contents.py and harness/target/found.py find by its place.
_FOUND: Final = re.compile(r"targets/\w+/(older|bundle|target|commands|needs)\.py")
# Names of one system, which the harness and the judge do not know (docs/architecture.md).
_OF_ONE_SYSTEM: Final = re.compile(
    r"zookeeper|znode|zk_version|\bzk|czxid|chroot|kazoo|leaderandisr|stopreplica|updatemetadata"
    r"|offsetforleaderepoch|listoffsets|__cluster_metadata|leader-epoch-checkpoint|replication-offset-checkpoint",
    re.IGNORECASE,
)
_GENERAL: Final = re.compile(r"(harness|checkers)/.*\.(py|toml|txt|html|css|js|j2|jinja|tmpl|template)")

# The modules of tests in which the machine is asked, and a test is skipped.
_DECIDES: Final = ("tests/needs.py", "tests/skips.py")
# What they alone use, and how a path would be asked for.
_ASKING: Final = frozenset(
    (
        *("os.geteuid", "os.getuid", "shutil.which", "unittest.skip", "pytest.skip", "pytest.importorskip"),
        *("pytest.xfail", "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"),
    )
)
_ASKED: Final = frozenset(name.rpartition(".")[2] for name in _ASKING)
_WORDS: Final = re.compile(
    r"getuid|geteuid|shutil|unittest|pytest\.(mark\.)?(skip|xfail|importorskip)|(Path|os\.[\w.]+)\(['\"]/"
)
_LOOKS: Final = frozenset(
    ("exists", "is_file", "is_dir", "is_socket", "is_char_device", "access", "isfile", "isdir")
)

# Folders that every machine has; pages may name paths in them.
_EVERYWHERE: Final = frozenset(
    ("/", "/data", "/home", "/mnt", "/opt", "/root", "/src", "/srv", "/tmp", "/usr", "/var", "/var/tmp")
)


def tracked(root: Path = ROOT) -> dict[str, str]:
    """Return path -> text of every text file that git tracks."""
    names = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True, check=True)
    found: dict[str, str] = {}
    for name in filter(None, names.stdout.split("\0")):
        try:
            found[name] = (root / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # not text, or being replaced at this moment
    return found


def big_blobs(root: Path = ROOT, bytes_max: int = BLOB_BYTES_MAX) -> list[str]:
    """Find every blob in git's whole history that is larger than the limit."""
    objects = subprocess.run(
        ["git", "-C", str(root), "rev-list", "--objects", "--all"], capture_output=True, text=True, check=True
    )
    sizes = subprocess.run(
        ["git", "-C", str(root), "cat-file", "--batch-check=%(objecttype) %(objectsize) %(rest)"],
        input=objects.stdout,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split(" ", 2) for line in sizes.stdout.splitlines())
    return [
        f"{name}: {size} bytes in git; expected at most {bytes_max}"
        for kind, size, name in rows
        if kind == "blob" and int(size) > bytes_max
    ]


def modules(tree: Tree, *folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield path and syntax tree of each Python module below the folders, or of all modules if none is named."""
    for path, text in tree.items():
        if path.endswith(".py") and (not folders or path.split("/")[0] in folders):
            yield path, _parsed(text)


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def too_long(tree: Tree) -> list[str]:
    """Find modules of more than LINES_MAX lines without a reason in their docstring."""
    found = []
    for path, text in tree.items():
        lines = len(text.splitlines())
        if not path.endswith(".py") or lines <= LINES_MAX:
            continue
        if LENGTH_REASON not in (ast.get_docstring(_parsed(text)) or ""):
            found.append(
                f"{path}: {lines} lines; expected at most {LINES_MAX}, "
                f"or a line '{LENGTH_REASON} why' in its docstring"
            )
    return found


def machine_places(tree: Tree, root: Path = ROOT, home: Path | None = None) -> list[str]:
    """Find paths of this machine: the checkout, its parent folder, the folders beside it, the home directory."""
    ours = {path.split("/")[0] for path in tree}
    # A name of one or two letters is too short to mean a folder that happens to be beside the checkout.
    beside = {path.name for path in root.parent.iterdir() if path != root and path.name not in ours}
    beside = {name for name in beside if len(name) > 2}
    folders = [str(place) for place in (root, root.parent) if str(place) not in _EVERYWHERE]
    inside = [f"{home or Path.home()}/"] if str(home or Path.home()) != "/" else []
    places = [rf"(?<![\w.*-]){re.escape(folder)}(?![\w-])" for folder in folders] + [
        re.escape(word) for word in inside
    ]
    # One pattern for all folders beside it: there may be thousands.
    pattern = re.compile("|".join((*places, r"(?<![\w.*-])\.\./(?P<name>[\w.@+~=-]+)")))
    return [
        f"{path}:{_line(text, match.start())}: {match[0]!r}; expected no path of somebody's machine"
        for path, text in tree.items()
        # The pattern is slow, and most files have nothing that it could match.
        if any(begin in text for begin in ("../", *folders, *inside))
        for match in pattern.finditer(text)
        if match["name"] is None or {match["name"], match["name"].rstrip(".")} & beside
    ]


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def orphans(tree: Tree) -> list[str]:
    """Find modules that nothing imports or names and that are no script."""
    used: set[str] = set()
    for path, module in modules(tree, *PACKAGES, "docs"):  # where the example of a target is
        used |= {name for name in _uses(module) if name != _module_name(path)}
    used |= set(re.findall(r'"([a-z_.]+):\w+"', tree.get("pyproject.toml", "")))
    return [
        f"{path}: nothing imports it; expected a user, an entry point or its removal"
        for path, module in modules(tree, *PACKAGES)
        if not path.endswith(("__init__.py", "__main__.py")) and _module_name(path) not in used
        if not _FOUND.fullmatch(path)
        if not _runs(module)
    ]


def foreign_names(tree: Tree) -> list[str]:
    """Find names of one system in the harness and in the judge: in code, comments, docstrings and paths."""
    return [
        f"{path}:{number}: {match[0]!r} is a name of one system; expected a general word, or a file below targets/"
        for path, text in tree.items()
        if _GENERAL.fullmatch(path)
        for number, line in enumerate((path, *text.splitlines()))
        if (match := _OF_ONE_SYSTEM.search(line))
    ]


def own_skips(tree: Tree) -> list[str]:
    """Find tests that decide by themselves whether the machine is good enough, or skip themselves."""
    return [
        f"{path}:{node.lineno}: {asked}; expected @needs(ROW) of tests/needs.py, whose table decides"
        # To parse all tests takes seconds, and few have a word of these.
        for path, module in modules({path: text for path, text in tree.items() if _WORDS.search(text)}, "tests")
        if path not in _DECIDES
        for node in ast.walk(module)
        if isinstance(node, ast.expr | ast.ImportFrom) and (asked := _asks_the_machine(node))
    ]


def _asks_the_machine(node: ast.expr | ast.ImportFrom) -> str:
    """Return what an expression asks of the machine, or how it skips a test; "" if it does neither."""
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        names = [ast.unparse(node)] if isinstance(node, ast.Attribute) and node.attr in _ASKED else []
    if asked := next((name for name in names if name in _ASKING), ""):
        return asked
    asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOOKS
    if asks and re.match(r"(pathlib\.)?Path\(['\"]/(?!proc/self\b)|os\.(path\.)?\w+\(['\"]/", ast.unparse(node)):
        return ast.unparse(node)
    return ""


def _uses(module: ast.Module) -> Iterator[str]:
    """Yield every dotted name that a module imports, and every string in it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _module_name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _runs(module: ast.Module) -> bool:
    return any(isinstance(node, ast.If) and "__main__" in ast.dump(node.test) for node in module.body)

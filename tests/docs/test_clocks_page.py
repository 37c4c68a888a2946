"""docs/clocks.md names every place of our broker that the wall clock decides, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKER = ROOT / "targets" / "broker"
PAGE = ROOT / "docs" / "clocks.md"
ROW = re.compile(r"^\| `(targets/broker/[\w/]+\.py)` \|", re.MULTILINE)
# The core gets the wall clock's time with an event, and these hand it on without a look at it.
HANDED_ON = {"targets/broker/core/broker.py", "targets/broker/core/state.py"}
CLOCKS = {"time", "time_ns", "localtime", "gmtime", "ctime", "strftime", "asctime"}
OF_DATES = {"now", "utcnow", "today"}
OF_FILES = {"st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime", "st_atime_ns"}


def wall_reads(source: str) -> Iterator[str]:
    """Yield what of a module's source depends on the wall clock."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in CLOCKS:
                yield f"time.{name}"
            case ast.Attribute(value=ast.Name(id="datetime" | "date"), attr=name) if name in OF_DATES:
                yield f"datetime.{name}"
            case ast.Attribute(attr=name) if name in OF_FILES:
                yield name
            case ast.Name(id="CLOCK_REALTIME") | ast.Attribute(attr="CLOCK_REALTIME"):
                yield "CLOCK_REALTIME"
            case ast.ImportFrom(module="time", names=names):
                yield from (f"time.{each.name}" for each in names if each.name in CLOCKS)
            case ast.Attribute(attr="wall_ms"):
                yield "wall_ms"
            case ast.Constant(value=str(text)) if "%(asctime)s" in text:
                yield "asctime"
            case _:
                pass


def places() -> set[str]:
    """Return the modules of our broker that depend on the wall clock."""
    found = {path for path in sorted(BROKER.rglob("*.py")) if any(wall_reads(path.read_text("utf-8")))}
    return {str(path.relative_to(ROOT)) for path in found}


def test_page_names_every_place_of_our_broker_that_depends_on_the_wall_clock() -> None:
    named = ROW.findall(PAGE.read_text("utf-8"))
    assert sorted(places() - HANDED_ON) == sorted(named)


def test_what_only_hands_the_wall_clocks_time_on_compares_it_with_nothing() -> None:
    for name in sorted(HANDED_ON):
        tree = ast.parse((ROOT / name).read_text("utf-8"))
        decided = [each for each in ast.walk(tree) if isinstance(each, ast.Compare | ast.BinOp)]
        texts = [ast.unparse(each) for each in decided]
        assert not [text for text in texts if "wall_ms" in text]


@pytest.mark.parametrize(
    "source",
    [
        "import time\nat = time.time()",
        "from time import time_ns",
        "from datetime import datetime\nat = datetime.now()",
        "age = path.stat().st_mtime",
        "time.clock_gettime(time.CLOCK_REALTIME)",
        "late = core.wall_ms > 7",
        "FORMAT = '%(asctime)s %(message)s'",
    ],
)
def test_each_way_to_the_wall_clock_is_seen(source: str) -> None:
    assert list(wall_reads(source))


def test_monotonic_clock_is_none() -> None:
    assert not list(wall_reads("import time\nat = time.monotonic_ns()"))

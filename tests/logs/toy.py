"""The log of docs/extending.md, which is no Kafka's: a file a node, a record a line; the page has its reader."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "extending.md"


def _executed() -> Any:
    """Execute the example of the page, and return its reader."""
    section = PAGE.read_text(encoding="utf-8").partition("## The log reader of a target")[2]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None, "the section begins with the example"
    module: dict[str, Any] = {"__name__": "example"}
    exec(compile(found[1], str(PAGE), "exec"), module)
    return module["LineLogs"]


ToyLogs: Final = _executed()


def toy(logs: object) -> Any:
    """Return a target with these logs and no other part."""
    return cast(Any, SimpleNamespace(name="toy", logs=logs))


TARGET: Final = toy(ToyLogs())

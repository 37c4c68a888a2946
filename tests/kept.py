"""
What of a grid is in `make test`, and what is exhaustive: every cell, every release, every moment of a kill.

A grid shows the same thing again and again under other circumstances; its representatives show that it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

exhaustive = pytest.mark.exhaustive


def keep(values: Iterable[Any], *kept: Any) -> list[Any]:
    """
    Mark every value but the kept ones as exhaustive.

    Args:
        values: what a test or a fixture is parametrised by; pytest.param with an id, or plain.
        kept: representatives, each the value itself or the id of its pytest.param.
    """
    marked, found = [], set()
    for value in values:
        params = value if isinstance(value, type(pytest.param())) else pytest.param(value)
        names = {params.id, *params.values} if params.id else set(params.values)
        hits = [each for each in kept if each in names or each == params.values]
        found.update(map(str, hits))
        marked.append(
            params if hits else pytest.param(*params.values, id=params.id, marks=[*params.marks, exhaustive])
        )
    missing = {str(each) for each in kept} - found
    assert not missing, f"kept {sorted(missing)}: not among the values"
    return marked

"""
Which values of a parameter grid run in `make test`, and which only in the exhaustive tests.

A grid (every run, every release, every moment of a kill) repeats one claim under other circumstances; a few
representatives are enough for `make test`.
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
        values: the parameters of a test or a fixture; pytest.param with an id, or plain.
        kept: representatives, each the value itself or the id of its pytest.param.

    Raises:
        AssertionError: a kept value is not among the values.
    """
    marked, found = [], set()
    for value in values:
        params = value if isinstance(value, type(pytest.param())) else pytest.param(value)
        names = [*params.values, params.values, *([params.id] if params.id else [])]
        hits = [each for each in kept if each in names]
        found.update(map(str, hits))
        rest = () if hits else (exhaustive,)
        marked.append(pytest.param(*params.values, id=params.id, marks=[*params.marks, *rest]))
    missing = {str(each) for each in kept} - found
    assert not missing, f"kept {sorted(missing)}: not among the values"
    return marked

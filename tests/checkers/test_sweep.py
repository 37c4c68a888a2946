"""Every single change of three clean runs is noticed, or is named harmless with the reason."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest

from checkers.judge import check_in_process
from tests.checkers.harmless import HARMLESS, Group, covers
from tests.checkers.plants.edit import Edit
from tests.checkers.sweep import CLEAN, changes, reason, unnoticed
from tests.kept import exhaustive


@pytest.mark.parametrize("run", CLEAN)
def test_run_is_clean_and_has_hundreds_of_changes(run: str) -> None:
    assert [] == check_in_process(Edit(run).ops)
    sorts = Counter(change.group[-1] for change in changes(run))
    assert sum(sorts.values()) > 800
    assert {"drop", "double", "swap", "more", "less", "flip", "null", "other node", "other text"} <= sorts.keys()


def _unnoticed(run: str) -> dict[Group, str]:
    return {change.group: change.text for change in unnoticed(run)[1]}


@pytest.mark.slow
@exhaustive
def test_every_change_is_noticed_or_named_harmless_and_every_name_is_needed() -> None:
    with ProcessPoolExecutor(max_workers=2) as pool:
        groups = {group: text for found in pool.map(_unnoticed, CLEAN) for group, text in found.items()}
    assert {} == {group: text for group, text in groups.items() if reason(group) is None}
    assert [] == [key for key in HARMLESS if not any(covers(key, g) for g in groups)]

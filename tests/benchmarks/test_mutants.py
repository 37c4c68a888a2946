"""Every mutant of the gauntlet fits the core as it is, and they cover its modules and the classes of bugs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

import pytest

from benchmarks.mutants import MUTANTS, PARTS, WITHOUT
from benchmarks.mutants.mutant import CATEGORIES, Category, Mutant, MutantError

CORE = Path("targets/broker/core")
FOLDER = Path("benchmarks/mutants")
ALL = [mutant for part in PARTS for mutant in part.MUTANTS]


def source(module: str) -> str:
    return (CORE / f"{module}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_mutant_applies(mutant: Mutant) -> None:
    before = source(mutant.module)
    after = mutant.applied(before)
    compile(after, mutant.name, "exec")
    assert before != after


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_mutant_is_one_to_three_lines_in_words(mutant: Mutant) -> None:
    before = source(mutant.module)
    lines = list(unified_diff(before.splitlines(), mutant.applied(before).splitlines(), lineterm="", n=0))[2:]
    assert 1 <= max(sum(line.startswith(sign) for line in lines) for sign in "-+") <= 3
    assert mutant.sentence.endswith(".")
    assert mutant.breaks


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_no_mutant_reads_a_rule_otherwise(mutant: Mutant) -> None:
    """A rule put back is a mutant of docs/rules.md, and none of these."""
    assert "rules" != mutant.module
    assert all(before.count("rules.") == after.count("rules.") for before, after in mutant.edits)


def test_every_file_with_mutants_is_a_part() -> None:
    files = {
        path.stem for path in FOLDER.glob("*.py") if "\nMUTANTS: Final = (" in path.read_text(encoding="utf-8")
    }
    assert files == {part.__name__.rpartition(".")[2] for part in PARTS} and len(files) == len(PARTS)


def test_names_are_unique_and_so_are_the_changed_sources() -> None:
    assert len(ALL) == len(MUTANTS)
    assert len(ALL) == len({(mutant.module, mutant.applied(source(mutant.module))) for mutant in ALL})


def test_every_module_and_class_has_its_share() -> None:
    modules = Counter(mutant.module for mutant in ALL)
    classes = Counter(mutant.category for mutant in ALL)
    assert 72 <= len(ALL)
    assert {path.stem for path in CORE.glob("*.py")} - {"__init__"} == modules.keys() | WITHOUT.keys()
    assert not modules.keys() & WITHOUT.keys()
    assert [] == [module for module, count in modules.items() if count < 3]
    assert [] == [each for each in Category if classes[each] < 4]
    assert set(Category) == CATEGORIES.keys()


def test_mutant_that_does_not_fit_any_more_says_where() -> None:
    mutant = replace(MUTANTS["min-isr-after-alone"], edits=(("no such text", ""),))
    with pytest.raises(MutantError, match=r"min-isr-after-alone: 'no such text' occurs 0 times .*\.leader"):
        mutant.applied(source("leader"))

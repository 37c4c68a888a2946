"""A seed is left out for a mutant only where its run must be that of the core as it is."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pytest

from benchmarks.mutants import MUTANTS
from benchmarks.mutants.children import Answer
from benchmarks.mutants.mutant import Category, Mutant, MutantError
from benchmarks.mutants.reach import PROBE, Block, differing_blocks, places_of, probed
from benchmarks.mutants.search import Gauntlet
from benchmarks.mutants.survey import Survey, Surveyed, surveyed_in
from tests.kept import exhaustive

SOURCE: Final = dedent("""\
    LIMIT = 3

    def outer(a, b=1):
        \"\"\"Documented.\"\"\"
        total = 0
        for each in a:
            if each > LIMIT:
                total += each
            elif each == b:
                total -= 1
            else:
                try:
                    total += int(each)
                except ValueError:
                    total = -1
                finally:
                    b = 0
        def inner(c):
            return c + 1
        return inner(total)

    class Thing:
        size = 4

        def grow(self, by):
            match by:
                case 1:
                    self.size += 1
                case _:
                    self.size = 0
            return [x for x in range(by)]
    """)


def mutant(*edits: tuple[str, str]) -> Mutant:
    return Mutant(
        name="a", module="m", category=Category.MANY, sentence="It breaks.", breaks="A rule", edits=tuple(edits)
    )


def starts(*edits: tuple[str, str]) -> list[str] | None:
    """Return the first lines of the blocks in which edits lie."""
    blocks = differing_blocks(mutant(*edits), SOURCE)
    lines = SOURCE.splitlines()
    return None if blocks is None else [lines[line - 1].strip() for line, _ in sorted(blocks)]


@pytest.mark.parametrize(
    ("edits", "blocks"),
    [
        ([("total += each", "total += 2")], ["total += each"]),
        ([("total -= 1", "pass")], ["total -= 1"]),
        ([("each == b", "each != b")], ["elif each == b:"]),
        ([("each > LIMIT", "each >= LIMIT")], ["if each > LIMIT:"]),
        ([("total = -1", "total = -2")], ["total = -1"]),
        ([("ValueError", "TypeError")], ["try:"]),
        ([("b = 0", "b = 2")], ["b = 0"]),
        ([("total = 0\n", "total = 0\n    a = a[1:]\n")], ['"""Documented."""']),
        ([("return c + 1", "return c")], ["return c + 1"]),
        ([("self.size += 1", "self.size += 2")], ["self.size += 1"]),
        ([("case 1:", "case 2:")], ["match by:"]),
        ([("total += each", "pass"), ("self.size = 0", "pass")], ["total += each", "self.size = 0"]),
        # What is run with the import, and what decides what a call is.
        ([("LIMIT = 3", "LIMIT = 4")], None),
        ([("size = 4", "size = 5")], None),
        ([("b=1", "b=2")], None),
        ([("total += each", "pass"), ("size = 4", "size = 5")], None),
        # A name that becomes another's, and a function that becomes a generator: the rest of the function differs.
        ([("total -= 1", "LIMIT = 1")], ['"""Documented."""']),
        ([("total -= 1", "yield total")], ['"""Documented."""']),
        ([("return c + 1", "return (b := c)")], ['"""Documented."""']),
        ([("self.size += 1", "self.size = sum(x for x in [1])")], ["match by:"]),
    ],
)
def test_blocks_have_all_that_a_mutant_changes(edits: list[tuple[str, str]], blocks: list[str] | None) -> None:
    assert blocks == starts(*edits)


@pytest.mark.parametrize(
    ("argument", "reached"), [(5, {0, 4}), (1, {1, 4}), (2.5, {3, 4}), (float("nan"), {2, 3, 4})]
)
def test_probes_say_which_blocks_are_entered_and_change_nothing(argument: float, reached: set[int]) -> None:
    numbers: dict[Block, int] = {}
    for number, before in enumerate(("total += each", "total -= 1", "total = -1", "b = 0", "return c + 1")):
        (block,) = differing_blocks(mutant((before, "pass")), SOURCE) or ()
        numbers[block] = number
    entered: set[int] = set()
    plain: dict[str, Any] = {}
    exec(compile(SOURCE, "plain", "exec"), plain)
    module: dict[str, Any] = {PROBE: entered.add}
    exec(compile(probed(SOURCE, numbers), "probed", "exec"), module)
    assert set() == entered
    assert plain["outer"]([argument]) == module["outer"]([argument])
    assert reached == entered
    assert "Documented." == module["outer"].__doc__


@exhaustive
def test_every_block_of_the_mutants_is_found_again_in_its_module() -> None:
    places, unknown = places_of(MUTANTS.values())
    assert MUTANTS.keys() == unknown | {name for _, _, names in places for name in names}
    assert len(unknown) < 0.1 * len(MUTANTS)
    for module in {module for module, _, _ in places}:
        path = Path(module.replace(".", "/")).with_suffix(".py")
        numbers = {block: number for number, (own, block, _) in enumerate(places) if own == module}
        compile(probed(path.read_text(encoding="utf-8"), numbers), module, "exec")


# --- which seeds are played ----------------------------------------------------------------------------------
def surveyed(seed: int, *reached: str, kinds: tuple[str, ...] = ()) -> Surveyed:
    return Surveyed(seed=seed, reached=frozenset(reached), kinds=kinds)


def test_mutant_is_played_in_the_seeds_that_reach_it_and_in_no_seed_with_a_finding_of_its_own() -> None:
    known = [surveyed(0, "a"), surveyed(1), surveyed(2, "a", "b", kinds=("lost",)), surveyed(3, "a")]
    survey = Survey(done={each.seed: each for each in known})
    assert [0, 3, 4] == survey.seeds_of("a", range(5))  # nothing is known of the last one
    assert [2] == survey.own_findings(range(5))
    gauntlet = Gauntlet(range(5), hints={"a": 3, "b": 2}, survey=survey)
    assert [3, 0, 4] == gauntlet.seeds_of("a")
    assert [4] == gauntlet.seeds_of("b")
    assert (1, 1) == (gauntlet.expected_seeds("a"), gauntlet.expected_seeds("b"))


def test_survey_that_lacks_a_seed_is_an_error() -> None:
    line = surveyed(4, "a").to_dict()
    assert [surveyed(4, "a", "b")] == surveyed_in([4], frozenset("b"), Answer(lines=(line,)))
    with pytest.raises(MutantError, match=r"survey: 1 of the seeds 4 to 5 .*: boom; expected all; --every-seed"):
        surveyed_in([4, 5], frozenset(), Answer(lines=(line,), error="boom"))


@exhaustive
@pytest.mark.slow
def test_real_seed_that_finds_a_mutant_reaches_it() -> None:
    gauntlet = Gauntlet(range(3), survey=Survey())
    (chunk,) = gauntlet.look(jobs=1)
    assert [0, 1, 2] == [each.seed for each in chunk]
    assert [()] * 3 == [each.kinds for each in chunk]
    assert "checkpoint-written-once" in chunk[0].reached
    assert "fetching-goes-on" in chunk[1].reached
    assert any(each.reached < MUTANTS.keys() for each in chunk)

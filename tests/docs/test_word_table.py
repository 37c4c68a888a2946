"""Each target says what stands for every word of scenarios that targets give a meaning."""

from __future__ import annotations

import pytest

from harness.docs.word_table import words
from harness.scenario.condition_types import CONDITIONS
from harness.scenario.grammar import Word as Literal
from harness.target.found import found
from harness.target.wire import Word
from harness.target.words import OF_TARGETS
from nemesis import NEMESES

# What these mean does not depend on the target: what its own client said, or what rules of links did.
_OF_ALL = {"acked", "held", "led", "lost", "delayed", "doubled"}


def _begins(kind: type) -> str:
    literal = [part.text for part in kind.FORM if isinstance(part, Literal) and part.text[0].isalpha()]  # type: ignore[attr-defined]
    return " ".join(literal)


def test_every_condition_is_a_word_of_targets_or_the_same_for_all() -> None:
    assert {_begins(kind) for kind in CONDITIONS} <= {*OF_TARGETS, *_OF_ALL}
    assert not {*OF_TARGETS} & _OF_ALL


def test_every_word_of_targets_is_one_of_the_language() -> None:
    steps = {"add", "remove", "delete", "install"}
    assert {*OF_TARGETS} <= {_begins(kind) for kind in CONDITIONS} | {*NEMESES} | steps


@pytest.mark.parametrize("name", found())
def test_target_has_a_meaning_for_each_word_and_for_no_other(name: str) -> None:
    target = found()[name].load()
    assert {*OF_TARGETS} == {*target.words}
    assert target.wire is not None
    for rules in target.protocols().values():
        assert {*Word} == {*target.wire.stands(rules)}


def test_table_shows_versions_where_they_differ() -> None:
    rows = "\n".join(words()).splitlines()
    (question,) = [row for row in rows if row.startswith("| `question` ")]
    assert "Fetch: hw; OffsetForLeaderEpoch: kip101, " in question
    assert "Fetch: 0.10.2.2, 1.1.1@0.10.2, 2.8.2, 3.9.1" in question
    assert "nothing: no release can remove partitions" in "\n".join(rows)

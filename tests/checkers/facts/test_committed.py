"""checkers/facts/committed.py: which high watermark passed a record first."""

from __future__ import annotations

from checkers.facts.committed import commits_of
from tests.checkers.story import Story

RECORDS = {"x": ["x-0", "x-1", "x-2"]}


def test_leader_that_copied_an_append_bit_by_bit_commits_all_of_it() -> None:
    """B copies A's three records one by one, leads, and commits them at once."""
    story = Story(RECORDS, "kip101").leads("A", 0, 0).follows("B", "A", 0, 0).append("A", 0, 3, 0, "leader")
    for offset in range(3):
        story.append("B", offset, offset + 1, 0, "follower")
    story.leads("B", 1, 3, isr="B").passes("B", 2).passes("B", 3)
    commits = commits_of(story.ops)
    assert [(0, 1), (1, 2), (2, 3)] == [(commit.first, commit.end) for commit in commits]
    assert 1 == len({commit.origin for commit in commits})

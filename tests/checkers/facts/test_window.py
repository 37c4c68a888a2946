"""checkers/facts/window.py: what an upgrade from a version without epochs may lose, and what it may not."""

from __future__ import annotations

import pytest

from checkers.facts.fates import Cause, fates_of
from checkers.facts.window import has_window, is_forked
from checkers.rules.committed import committed
from checkers.rules.diverged import diverged
from checkers.rules.lost import lost
from harness.model import Kind, OpType, Source
from tests.checkers.golden import M1, M2, M3, RECORDS
from tests.checkers.story import Story


def follows(story: Story, node: str, epochs: str) -> Story:
    """Have a node follow another protocol from now on."""
    rules = {"epochs": epochs}
    return story.add(
        Source.RUNNER, "runner", OpType.INFO, "installed", node=node, protocol="kip101@hw", rules=rules
    )


def begun(*epochless: str, protocol: str = "kip101") -> Story:
    """Return a story in which A leads and has m1, and B has copied it; these nodes had no epochs."""
    story = (
        Story(RECORDS, protocol).started("A", "B", "C").elected("A", 0).leads("A", 0, 0).follows("B", "A", 0, 0)
    )
    for node in epochless:
        follows(story, node, "no")
    return story.sends("m1").append("A", 0, 3, 0, "leader").append("B", 0, 3, 0, "follower")


def cause_of_a_cut(story: Story, reason: str = "high-watermark") -> Cause:
    """Let B cut its log, though its leader has all of it, and return why the copy ended."""
    story.cut("B", 3, 2, reason)
    origin = next(op.index for op in story.ops if op.f == "append")
    end = fates_of(story.ops, 2, origin)["B"][0].end
    assert end is not None
    return end.cause


@pytest.mark.parametrize("epochless", ["A", "B"])
@pytest.mark.parametrize("reason", ["high-watermark", "no-epoch-information"])
def test_follower_may_fall_back_while_it_or_its_leader_has_no_epochs(epochless: str, reason: str) -> None:
    """Source: KIP-101, step 4.3: the follower will fall back to the current approach."""
    assert Cause.WINDOW is cause_of_a_cut(begun(epochless), reason)


def test_follower_may_fall_back_behind_what_was_written_without_epochs() -> None:
    story = follows(begun("A"), "A", "yes")
    assert Cause.WINDOW is cause_of_a_cut(story)


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        (begun(), "high-watermark"),
        (begun("C"), "high-watermark"),
        (begun("A"), "epoch-answer"),
        (follows(begun(), "A", "no").append("A", 3, 5, 0, "leader"), "out-of-range"),
        # The version without epochs is what is tested.
        (follows(begun(protocol="hw"), "C", "yes"), "high-watermark"),
    ],
    ids=["nobody", "another-node", "epochs-asked-for", "out-of-range", "own-protocol"],
)
def test_nothing_else_excuses_a_cut(story: Story, reason: str) -> None:
    assert Cause.CUT is cause_of_a_cut(story, reason)


def test_run_has_a_window_if_nodes_with_epochs_were_set_back() -> None:
    assert [True, False, False] == [has_window(each.ops) for each in (begun("A"), begun(), begun(protocol="hw"))]


def cut_and_elected(*epochless: str) -> Story:
    """Return KIP-101's scenario 1: B has cut away what A committed, A dies, and B leads without it."""
    story = begun(*epochless).passes("A", 3).acked("m1", 0).passes("B", 0)
    story.fault("kill", "B").fault("restart", "B").started("B").recovered("B", 3).follows("B", "A", 0, 3)
    story.cut("B", 3, 0, "high-watermark").fault("kill", "A").elected("B", 1, isr="B").leads("B", 1, 0, isr="B")
    return story.sends("m2").append("B", 0, 2, 1, "leader").passes("B", 2).acked("m2", 0)


@pytest.mark.parametrize(
    ("epochless", "kinds"), [((), {Kind.LOST}), (("C",), {Kind.LOST}), (("A", "B"), {Kind.PERMITTED})]
)
def test_loss_by_such_a_cut_is_permitted_and_without_a_window_it_is_not(
    epochless: tuple[str, ...], kinds: set[Kind]
) -> None:
    """Source: KIP-101, Motivation, Scenario 1."""
    story = cut_and_elected(*epochless).healed().log("B", [(1, M2)]).read(*M2).done()
    assert kinds == {each.kind for each in lost(story.ops)}
    not_replicated = any(each.kind is Kind.NOT_REPLICATED for each in committed(story.ops))
    assert not_replicated is (Kind.LOST in kinds)


@pytest.mark.parametrize(("epochless", "forked"), [((), False), (("A", "B"), True)])
def test_who_comes_back_with_what_was_lost_may_keep_it(epochless: tuple[str, ...], forked: bool) -> None:
    """Source: KIP-101, Motivation, Scenario 2: replicas differ."""
    story = cut_and_elected(*epochless).fault("restart", "A").started("A").recovered("A", 3)
    story.passes("A", 3).follows("A", "B", 1, 3).cut("A", 3, 3, "high-watermark", epoch=1)
    at = len(story.ops)
    story.healed().log("B", [(1, M2)]).log("A", [(0, M1)]).read(*M2).done()
    assert [forked, forked, False] == [
        is_forked(story.ops, "A", 1),
        is_forked(story.ops, None, 2),
        is_forked(story.ops, "B", 1),
    ]
    assert not is_forked(story.ops, "A", 1, until=at - 1)
    assert forked is not bool(diverged(story.ops))


def test_what_was_kept_is_no_excuse_once_it_was_cut_and_copied_anew() -> None:
    story = cut_and_elected("A", "B").fault("restart", "A").started("A").recovered("A", 3)
    story.follows("A", "B", 1, 3).cut("A", 3, 3, "high-watermark", epoch=1)
    story.cut("A", 3, 0, "high-watermark", epoch=1).append("A", 0, 2, 1, "follower")
    story.healed().log("B", [(1, M2)]).log("A", [(1, M3[:2])]).read(*M2).done()
    assert not is_forked(story.ops, None, 1)
    assert diverged(story.ops)

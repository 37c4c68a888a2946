"""Cycles of dependencies: their names, what hides what, and that none is missed or made up."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise, product

import networkx
import pytest

from checkers.jepsen.cycles import LEVELS, Cycles
from checkers.jepsen.edges import wr, ww
from checkers.jepsen.facts import Facts, gather
from checkers.jepsen.finding import Finding
from tests.checkers.jepsen.story import ASSIGN_ONLY, ASSIGN_WW, Story

SEEDS = range(60)


def read_each_other() -> Story:
    """Return two transactions at the same time, each of which polls what the other sends."""
    story = Story().line(0, "invoke", "txn", [["send", 0, 1], ["poll"]])
    story.line(1, "invoke", "txn", [["send", 1, 2], ["poll"]])
    story.line(0, "ok", "txn", [["send", 0, [0, 1]], ["poll", {"1": [[0, 2]]}]])
    return story.line(1, "ok", "txn", [["send", 1, [0, 2]], ["poll", {"0": [[0, 1]]}]])


def interleaved(*, reading: bool) -> Story:
    """Return two transactions whose sends interleave in two keys; if they read, each polls from the other too."""
    polls = ([["poll", {"3": [[0, 9]]}]], [["poll", {"2": [[0, 8]]}]]) if reading else ([], [])
    story = Story().line(0, "invoke", "txn", [["send", 0, 1], ["send", 1, 2], ["send", 2, 8], ["poll"]])
    story.line(1, "invoke", "txn", [["send", 0, 3], ["send", 1, 4], ["send", 3, 9], ["poll"]])
    story.line(0, "ok", "txn", [["send", 0, [0, 1]], ["send", 1, [1, 2]], ["send", 2, [0, 8]], *polls[0]])
    story.line(1, "ok", "txn", [["send", 0, [1, 3]], ["send", 1, [0, 4]], ["send", 3, [0, 9]], *polls[1]])
    return story.poll(2, {0: [[0, 1], [1, 3]], 1: [[0, 4], [1, 2]], 2: [[0, 8]], 3: [[0, 9]]})


def test_wr_edges_alone_make_a_g1c_which_is_invalid_without_ww_edges() -> None:
    both = {"G1c": 1, "PL-2-cycle-exists": 1}
    assert both == read_each_other().counts(ASSIGN_WW) == read_each_other().counts(ASSIGN_ONLY)
    assert True is read_each_other().verdict(ASSIGN_WW).valid
    assert False is read_each_other().verdict(ASSIGN_ONLY).valid


def test_a_g0_hides_a_g1c_of_its_component() -> None:
    """
    Only the weakest level that a component breaks is named.

    Source: Elle, elle.txn.
    """
    assert {"G0": 1, "PL-1-cycle-exists": 1} == interleaved(reading=False).counts(ASSIGN_WW)
    assert {} == interleaved(reading=False).counts(ASSIGN_ONLY)
    assert {"G0": 1, "PL-1-cycle-exists": 1} == interleaved(reading=True).counts(ASSIGN_WW)
    assert {"G1c": 1, "PL-2-cycle-exists": 1} == interleaved(reading=True).counts(ASSIGN_ONLY)


def test_a_component_may_break_two_levels_of_which_neither_is_the_weaker() -> None:
    """One transaction reads from another and the other way round, and one was sent below what was acknowledged."""
    story = Story().send(5, (5, 1, 50))
    story.line(0, "invoke", "txn", [["send", 0, 1], ["send", 5, 51], ["poll"]])
    story.line(1, "invoke", "txn", [["send", 1, 2], ["poll"]])
    story.line(0, "ok", "txn", [["send", 0, [0, 1]], ["send", 5, [0, 51]], ["poll", {"1": [[0, 2]]}]])
    story.line(1, "ok", "txn", [["send", 1, [0, 2]], ["poll", {"0": [[0, 1]]}]])
    story.poll(2, {0: [[0, 1]], 1: [[0, 2]], 5: [[0, 51], [1, 50]]})
    expected = {"G0-realtime": 1, "G1c": 1, "PL-2-cycle-exists": 1, "strong-PL-1-cycle-exists": 1}
    assert expected == story.counts(ASSIGN_WW)


@pytest.mark.parametrize(("type_", "expected"), [("ok", 1), ("info", 0), ("fail", 0)])
def test_nothing_follows_what_did_not_surely_happen(type_: str, expected: int) -> None:
    """A poll that sees what is sent after it breaks real time only if it is ok."""
    story = Story().poll(1, {0: [[0, 10]]}, type_=type_).send(0, (0, 0, 10)).poll(2, {0: [[0, 10]]})
    assert expected == story.counts().get("G1c-realtime", 0)
    assert expected == story.counts().get("strong-PL-2-cycle-exists", 0)


def test_a_cycle_shows_each_step_and_comes_back() -> None:
    facts = gather(read_each_other().read().ops)
    _, cycle = Cycles(facts).find(ww_deps=True)
    assert cycle.ops[0] is cycle.ops[-1]
    assert {2, 3} == {op.index for op in cycle.ops}
    assert [("wr", 0, 1), ("wr", 1, 2)] == sorted(
        (step["type"], step["key"], step["value"]) for step in cycle.more["steps"]
    )


@pytest.mark.parametrize(
    ("story", "empty"),
    [
        (Story().op(0, "assign", [0]), True),
        (Story().send(0, (0, 0, 10)), True),
        (Story().send(0, (0, None, 10), type_="info").send(0, (0, None, 11), type_="info"), True),
        (Story().op(0, "assign", [0]).op(0, "assign", [0]), True),
        (Story().poll(0, {}).poll(1, {}), False),
        (Story().send(0, (0, 0, 10), type_="fail").poll(1, {0: [[0, 10]]}), False),
    ],
    ids=["assign", "one-send", "infos", "assigns", "real-time", "wr"],
)
def test_empty_graph_is_one_without_any_edge(story: Story, empty: bool) -> None:
    assert empty is ("empty-transaction-graph" in story.counts())


@pytest.mark.parametrize("seed", SEEDS)
def test_levels_broken_are_those_of_the_graph_with_every_edge(seed: int) -> None:
    """The chain of barriers, and leaving out what can be in no cycle, change nothing: compared with all edges."""
    facts = gather(random_story(random.Random(seed)).read().ops)
    for ww_deps in (True, False):
        found = [*Cycles(facts).find(ww_deps=ww_deps)]
        assert sorted(all_edges(facts, ww_deps)) == sorted(
            (each.kind, len(each.ops)) for each in found if each.kind.endswith("-exists")
        )
        for each in found:
            check_cycle(each)


def check_cycle(finding: Finding) -> None:
    if "steps" in finding.more:
        assert len(finding.ops) == len(finding.more["steps"]) + 1 > 2
        for (one, two), step in zip(pairwise(finding.ops), finding.more["steps"], strict=True):
            if step["type"] == "realtime":
                assert two.invocation is not None
                assert one.type == "ok" and one.index < two.invocation.index
            else:
                sender, receiver = step["value"], step.get("value'", step["value"])
                assert sender in one.sent(step["key"])
                assert receiver in (two.sent(step["key"]) if step["type"] == "ww" else two.polled(step["key"]))


def test_random_histories_break_every_level() -> None:
    kinds = {
        kind
        for seed, ww_deps in product(SEEDS, (True, False))
        for kind, _ in all_edges(gather(random_story(random.Random(seed)).read().ops), ww_deps)
    }
    assert {f"{level.name}-cycle-exists" for level in LEVELS} == kinds


def all_edges(facts: Facts, ww_deps: bool) -> Iterator[tuple[str, int]]:
    """Yield what the components of the graph with quadratically many edges break, and the size of the smallest."""
    done = facts.transactions
    edges = {
        "ww": {*ww(facts, done)} if ww_deps else set(),
        "wr": {*wr(facts, done)},
        "realtime": {
            (one.index, two.index)
            for one, two in product(done, done)
            if one.type == "ok" and two.invocation is not None and one.index < two.invocation.index
        },
    }
    whole = networkx.DiGraph([edge for of_kind in edges.values() for edge in of_kind])
    for component in networkx.strongly_connected_components(whole):
        broken: set[str] = set()
        for level in LEVELS:
            graph = networkx.DiGraph([edge for kind in level.edges for edge in edges[kind]]).subgraph(component)
            sizes = [len(each) for each in networkx.strongly_connected_components(graph) if len(each) > 1]
            if sizes and not broken.intersection(level.implied_by):
                broken.add(level.name)
                yield f"{level.name}-cycle-exists", min(sizes)


def random_story(chance: random.Random) -> Story:
    """Return a history whose offsets and polls are drawn: it has cycles of all kinds."""
    story = Story()
    offsets = {key: chance.sample(range(24), 24) for key in range(3)}
    value = 0
    sent: list[tuple[int, int, int]] = []
    running: dict[int, list[list[object]]] = {}
    for _ in range(chance.randrange(8, 28)):
        process = chance.randrange(4)
        if process not in running:
            mops: list[list[object]] = [["poll"]] if chance.random() < 0.6 else []
            for _ in range(chance.randrange(3)):
                value += 1
                key = chance.randrange(3)
                sent.append((key, offsets[key].pop(), value))
                mops.append(["send", key, value])
            running[process] = mops
            story.line(process, "invoke", "txn", mops)
        else:
            finish(story, process, running.pop(process), sent, chance)
    for process, mops in running.items():
        finish(story, process, mops, sent, chance)
    return story


def finish(
    story: Story, process: int, mops: list[list[object]], sent: list[tuple[int, int, int]], chance: random.Random
) -> None:
    """Complete an operation; mostly it polls only what is sent by now."""
    offset_of = {(key, value): offset for key, offset, value in sent}
    done: list[list[object]] = []
    for mop in mops:
        if mop == ["poll"]:
            polled: dict[str, list[list[int]]] = {}
            for key, offset, value in chance.sample(sent, min(len(sent), chance.randrange(3))):
                polled.setdefault(str(key), []).append([offset, value])
            done.append(["poll", polled])
        else:
            key, value = mop[1], mop[2]
            assert isinstance(key, int) and isinstance(value, int)
            done.append(["send", key, [offset_of[key, value], value]])
    story.line(process, "ok" if chance.random() < 0.8 else "info", "txn", done)

"""Each anomaly in a small history of its own, and the same history a step away from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from checkers.jepsen.definitions import ANOMALIES, Bad
from checkers.jepsen.facts import gather
from tests.checkers.jepsen.story import ASSIGN_ONLY, ASSIGN_WW, SUBSCRIBE_WW, Story, by_name, values

ALL = {0: values(0, 2)}


def two_at_one_offset(first: str, second: str) -> Story:
    story = Story().send(0, (0, 0, 10)).send(0, (0, None, 11), type_="info").send(0, (0, None, 12), type_="info")
    story.poll(1, {0: [[0, 10], [1, 11]]}, type_=first)
    return story.poll(2, {0: [[0, 10], [1, 12]]}, type_=second)


def lost(type_: str, together: bool = False) -> Story:
    """Return a history in which nobody polls value 11, below one that was polled."""
    story = Story().send(0, (0, 0, 10))
    story.send(0, (0, 1, 11), *([(0, 2, 12)] if together else []), type_=type_)
    return (story if together else story.send(0, (0, 2, 12))).poll(1, {0: [[0, 10]]}).poll(2, {0: [[2, 12]]})


def aborted(type_: str, reader: str = "ok") -> Story:
    return Story().send(0, (0, None, 10), type_=type_).poll(1, {0: [[0, 10]]}, type_=reader)


def own(sent: int, type_: str = "ok") -> Story:
    story = Story().filled()
    polled = by_name({0: [*values(0, 2), [3, 13]]})
    mops = [["send", 0, [3, 13]] if sent == 13 else ["send", 0, [4, 14]], ["poll", polled]]
    if sent != 13:
        story.send(5, (0, 3, 13))
    return story.op(1, "txn", mops, type_).poll(2, {0: [*values(0, 3), *([] if sent == 13 else [[4, 14]])]})


def moved(first: list[list[int]], second: list[list[int]], type_: str = "ok", process: int = 1) -> Story:
    return Story().filled().poll(1, {0: first}).poll(process, {0: second}, type_).poll(2, ALL)


def reassigned(keys: list[int], type_: str = "ok", f: str = "assign") -> Story:
    story = Story().op(1, "assign", [0]).filled().poll(1, ALL)
    return story.op(1, f, keys, type_).op(1, f, [0]).poll(1, ALL)


def within(polls: list[list[list[int]]], type_: str = "ok", keys: list[int] | None = None) -> Story:
    mops = [["poll", by_name({0: pairs})] for pairs in polls]
    more = {} if keys is None else {"rebalance-log": [{"keys": keys}, {}]}
    return Story().filled().op(1, "poll", mops, type_, **more).poll(2, ALL)


def sent_back(first: tuple[int, str], second: tuple[int, str], process: int = 0) -> Story:
    (one, first_type), (two, second_type) = first, second
    story = Story().send(0, (0, one, 10), type_=first_type).send(process, (0, two, 11), type_=second_type)
    return story.poll(1, {0: sorted([[one, 10], [two, 11]])})


def sent_within(*offsets: int, other: int | None = None, type_: str = "ok") -> Story:
    story = Story()
    mops = [["send", 0, [offset, 20 + offset]] for offset in offsets]
    story.line(0, "invoke", "send", [["send", 0, 20 + offset] for offset in offsets])
    if other is not None:
        story.send(3, (0, other, 20 + other))
    story.line(0, type_, "send", mops)
    seen = sorted({*offsets, *([] if other is None else [other])})
    return story.poll(1, {0: [[offset, 20 + offset] for offset in seen]})


CASES: dict[str, tuple[Story, dict[str, int]]] = {
    # Two values at one offset: polls are believed whatever became of them, sends if they must have happened.
    "inconsistent-offsets": (two_at_one_offset("ok", "ok"), {"inconsistent-offsets": 1}),
    "inconsistent-offsets-failed-poll": (two_at_one_offset("ok", "fail"), {"inconsistent-offsets": 1}),
    "inconsistent-offsets-info-poll": (two_at_one_offset("ok", "info"), {"inconsistent-offsets": 1}),
    "inconsistent-offsets-of-fails": (
        Story().filled().send(4, (0, 1, 99), type_="fail").poll(1, ALL),
        {},
    ),
    "inconsistent-offsets-of-an-info-nobody-read": (
        Story().filled().send(4, (0, 1, 99), type_="info").poll(1, ALL),
        {},
    ),
    "inconsistent-offsets-of-another-key": (
        Story().filled().send(4, (1, 1, 99)).poll(1, {**ALL, 1: [[1, 99]]}),
        {},
    ),
    # One value at two offsets.
    "duplicate-in-one-poll": (
        Story().send(0, (0, 0, 10)).poll(1, {0: [[0, 10], [1, 10]]}),
        {"duplicate": 1, "int-nonmonotonic-poll": 1},
    ),
    "duplicate-of-a-send": (
        Story().send(0, (0, 0, 10)).poll(1, {0: [[1, 10]]}),
        {"duplicate": 1},
    ),
    "no-duplicate-in-two-keys": (
        Story().send(0, (0, 0, 10), (1, 1, 10)).poll(1, {0: [[0, 10]], 1: [[1, 10]]}),
        {},
    ),
    # A later value was polled.
    "lost-write-ok": (lost("ok"), {"lost-write": 1, "unseen": 1}),
    "lost-write-info": (lost("info"), {}),
    "lost-write-fail": (lost("fail"), {}),
    "lost-write-info-with-another-polled": (lost("info", together=True), {"lost-write": 1}),
    "not-lost-at-the-end": (Story().filled().poll(1, {0: values(0, 1)}), {"unseen": 1}),
    "lost-write-if-only-an-info-polled": (
        Story().filled().poll(1, {0: values(0, 1)}, type_="info").poll(2, {0: [[2, 12]]}),
        {"lost-write": 2, "unseen": 2},
    ),
    # No ok operation polled it.
    "unseen-without-offset": (
        Story().filled().send(0, (0, None, 13)).poll(1, ALL),
        {"unseen": 1},
    ),
    "unseen-of-an-info": (Story().filled().send(0, (0, 3, 13), type_="info").poll(1, ALL), {}),
    "unseen-though-an-info-polled": (
        Story().filled().poll(1, {0: values(0, 1)}).poll(2, ALL, type_="info"),
        {"unseen": 1},
    ),
    "unseen-though-seen": (
        Story().filled().send(4, (1, 0, 50), type_="info").poll(1, ALL).poll(2, {1: [[0, 50]]}),
        {"unseen": 1},
    ),
    "unseen-though-seen-of-two": (
        Story()
        .filled()
        .send(4, (1, 0, 50), type_="info")
        .send(5, (1, 1, 51), type_="info")
        .poll(1, {**ALL, 1: [[0, 50], [1, 51]]}),
        {"unseen": 2},
    ),
    "seen-before-the-last": (
        Story().filled().send(4, (1, 0, 50), type_="info").poll(2, {1: [[0, 50]]}).poll(1, ALL),
        {},
    ),
    "seen-twice-at-last": (
        Story().filled().send(4, (1, 0, 50), type_="info").poll(2, {1: [[0, 50]]}).poll(1, {**ALL, 1: [[0, 50]]}),
        {},
    ),
    "seen-of-a-key-with-an-ok-send": (
        Story()
        .filled()
        .send(4, (1, 0, 50), type_="info")
        .send(5, (1, 1, 51))
        .poll(1, {**ALL, 1: [[0, 50], [1, 51]]}),
        {},
    ),
    # What failed was polled. Its key has no ok send, so that unseen's quirk counts it.
    "G1a": (aborted("fail").send(0, (1, 0, 1)).poll(1, {1: [[0, 1]]}), {"G1a": 1}),
    "G1a-at-last": (aborted("fail"), {"G1a": 1, "unseen": 1}),
    "G1a-polled-twice": (
        aborted("fail").poll(2, {0: [[0, 10]]}).send(0, (1, 0, 1)).poll(1, {1: [[0, 1]]}),
        {"G1a": 2},
    ),
    "no-G1a-of-an-info": (aborted("info").send(0, (1, 0, 1)).poll(1, {1: [[0, 1]]}), {}),
    "no-G1a-if-the-reader-failed": (aborted("fail", "fail").send(0, (1, 0, 1)).poll(1, {1: [[0, 1]]}), {}),
    # It polls what it sends itself.
    "precommitted-read": (own(13), {"precommitted-read": 1}),
    "precommitted-read-info": (own(13, "info"), {"precommitted-read": 1}),
    "precommitted-read-fail": (own(13, "fail"), {"G1a": 1, "precommitted-read": 1}),
    "no-precommitted-read": (own(14), {}),
    # Where a process goes on.
    "poll-skip": (moved(values(0, 0), values(2, 2)), {"poll-skip": 1}),
    "poll-skip-info": (moved(values(0, 0), values(2, 2), "info"), {"poll-skip": 1}),
    "poll-skip-fail": (moved(values(0, 0), values(2, 2), "fail"), {"poll-skip": 1}),
    "no-poll-skip-of-another-process": (moved(values(0, 0), values(2, 2), process=3), {}),
    "no-poll-skip-over-a-hole": (
        Story().send(0, (0, 0, 10), (0, 5, 15)).poll(1, {0: [[0, 10]]}).poll(1, {0: [[5, 15]]}),
        {},
    ),
    "position-stays-after-a-failed-poll": (
        Story()
        .filled()
        .poll(1, {0: values(0, 0)})
        .poll(1, {0: values(1, 2)}, type_="fail")
        .poll(1, {0: values(1, 2)}),
        {},
    ),
    "position-stays-after-an-info-poll": (
        Story()
        .filled()
        .poll(1, {0: values(0, 0)})
        .poll(1, {0: values(1, 2)}, type_="info")
        .poll(1, {0: values(1, 2)}),
        {},
    ),
    "nonmonotonic-poll": (moved(values(0, 1), values(1, 2)), {"nonmonotonic-poll": 1}),
    "monotonic-poll": (moved(values(0, 1), values(2, 2)), {}),
    "nonmonotonic-poll-same-assign": (reassigned([0]), {"nonmonotonic-poll": 1}),
    "valid-reassign-drops-position": (reassigned([1]), {}),
    "reassign-info-drops-position": (reassigned([1], "info"), {}),
    "reassign-fail-keeps-position": (reassigned([1], "fail"), {"nonmonotonic-poll": 1}),
    "resubscribe-drops-position": (reassigned([1], f="subscribe"), {}),
    "empty-list-forgets-position": (
        Story().filled().poll(1, ALL).poll(1, {0: []}).poll(1, ALL),
        {},
    ),
    "left-out-key-keeps-position": (
        Story().filled().poll(1, ALL).poll(1, {}).poll(1, ALL),
        {"nonmonotonic-poll": 1},
    ),
    "unknown-index-follows": (
        Story().filled().poll(1, ALL).send(4, (0, None, 19)).poll(1, {0: [[None, 19]]}).poll(1, {0: values(0, 2)}),
        {},
    ),
    # Within one operation.
    "int-poll-skip": (within([[*values(0, 0), *values(2, 2)]]), {"int-poll-skip": 1}),
    "int-poll-skip-between-polls": (within([values(0, 0), values(2, 2)]), {"int-poll-skip": 1}),
    "int-poll-skip-fail": (within([values(0, 0), values(2, 2)], "fail"), {"int-poll-skip": 1}),
    "int-poll-skip-rebalanced": (within([values(0, 0), values(2, 2)], keys=[0]), {}),
    "int-poll-skip-other-key-rebalanced": (within([values(0, 0), values(2, 2)], keys=[1]), {"int-poll-skip": 1}),
    "int-nonmonotonic-poll": (within([values(1, 1), values(0, 0)]), {"int-nonmonotonic-poll": 1}),
    "int-nonmonotonic-poll-same": (within([values(0, 2), values(2, 2)]), {"int-nonmonotonic-poll": 1}),
    "int-nonmonotonic-poll-rebalanced": (within([values(0, 2), values(0, 2)], keys=[0]), {}),
    "int-poll-in-order": (within([values(0, 1), values(2, 2)]), {}),
    # The order of sends.
    "nonmonotonic-send": (
        sent_back((5, "ok"), (3, "ok")),
        {"G0-realtime": 1, "nonmonotonic-send": 1, "strong-PL-1-cycle-exists": 1},
    ),
    "nonmonotonic-send-info": (sent_back((5, "info"), (3, "ok")), {"nonmonotonic-send": 1}),
    "nonmonotonic-send-of-two": (
        sent_back((5, "ok"), (3, "ok"), process=3),
        {"G0-realtime": 1, "strong-PL-1-cycle-exists": 1},
    ),
    "monotonic-send": (sent_back((3, "ok"), (5, "ok")), {}),
    "send-forgotten-by-assign": (
        Story()
        .send(0, (0, 5, 10), type_="info")
        .op(0, "assign", [1])
        .send(0, (0, 3, 11))
        .poll(1, {0: [[3, 11], [5, 10]]}),
        {},
    ),
    "send-kept-by-assign": (
        Story()
        .send(0, (0, 5, 10), type_="info")
        .op(0, "assign", [0])
        .send(0, (0, 3, 11))
        .poll(1, {0: [[3, 11], [5, 10]]}),
        {"nonmonotonic-send": 1},
    ),
    "int-nonmonotonic-send": (sent_within(1, 0), {"int-nonmonotonic-send": 1}),
    "int-nonmonotonic-send-info": (sent_within(1, 0, type_="info"), {"int-nonmonotonic-send": 1, "unseen": 2}),
    "int-send-in-order": (sent_within(0, 1), {}),
    "int-send-skip": (sent_within(0, 2, other=1), {"G0": 1, "PL-1-cycle-exists": 1, "int-send-skip": 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_the_definition(name: str) -> None:
    """
    Source: jepsen.tests.kafka, its analyses.
    """
    story, expected = CASES[name]
    assert expected == story.counts()


def test_every_anomaly_is_in_a_case_or_in_the_tests_of_cycles() -> None:
    found = {kind for _, counts in CASES.values() for kind in counts}
    cyclic = {kind for kind in ANOMALIES if "G1c" in kind or "PL-2" in kind} | {"empty-transaction-graph"}
    assert set(ANOMALIES) == found | cyclic


def test_log_of_a_key_believes_the_polls_of_a_send() -> None:
    story = Story().filled().op(5, "send", [["send", 1, [0, 1]], ["poll", {"0": [[9, 10]]}]])
    story.poll(1, {1: [[0, 1]]}).poll(2, {0: [*values(1, 2), [9, 10]]}).poll(3, {0: values(0, 0)})
    facts = gather(story.read().ops)
    assert 1 == story.counts()["duplicate"]
    assert [0, 1, 2, 9] == facts.logs[0].offsets
    assert {1} == facts.ok_polled.keys() - {0}


@pytest.mark.parametrize(
    ("bad", "valid"),
    [
        (Bad.ALWAYS, (False, False, False)),
        (Bad.UNLESS_SUBSCRIBE, (False, False, True)),
        (Bad.WITHOUT_WW, (True, False, True)),
        (Bad.NEVER, (True, True, True)),
    ],
)
def test_options_say_what_is_allowed(bad: Bad, valid: tuple[bool, ...]) -> None:
    kinds = [kind for kind, anomaly in ANOMALIES.items() if anomaly.bad is bad]
    assert kinds
    for kind in kinds:
        assert valid == tuple(column.allows(kind) for column in (ASSIGN_WW, ASSIGN_ONLY, SUBSCRIBE_WW)), kind


@pytest.mark.parametrize("name", ["poll-skip", "nonmonotonic-poll", "int-poll-skip", "nonmonotonic-send", "G1a"])
def test_subscribed_processes_may_skip_and_repeat_between_operations(name: str) -> None:
    story, _ = CASES[name]
    assert False is story.verdict(ASSIGN_WW).valid
    assert (ANOMALIES[name].bad is Bad.UNLESS_SUBSCRIBE) is story.verdict(SUBSCRIBE_WW).valid


def phantom() -> Story:
    return Story().filled().poll(1, {0: [*values(0, 2), [3, 99]]})


def open_send() -> Story:
    return Story().line(0, "invoke", "send", [["send", 0, 10]]).poll(1, {0: [[0, 10]]})


CRASHES: dict[str, tuple[Callable[[], Story], str]] = {
    "nobody-sent-it": (phantom, "no-writer-of-value: value 99 of key 0"),
    "its-send-is-open": (open_send, "no-writer-of-value: value 10 of key 0"),
    "an-info-polled-a-phantom": (
        lambda: Story().filled().poll(1, ALL).poll(2, {0: [[3, 99]]}, type_="info"),
        "no-writer-of-value: value 99 of key 0",
    ),
    "no-offset-is-known": (
        lambda: Story().send(0, (0, None, 10)).poll(1, {0: [[None, 10]]}),
        "no-known-offset: key 0",
    ),
    "nothing-was-polled-of-it": (lambda: Story().filled().poll(1, {0: []}), "no-known-offset: key 0"),
    "two-invocations": (
        lambda: Story().line(0, "invoke", "send", [["send", 0, 1]]).send(0, (0, 0, 2)),
        "double-invoke: process 0 invokes op 1 (line 2) while its op 0 is running",
    ),
    "two-completions": (
        lambda: Story().send(0, (0, 0, 1)).line(0, "ok", "send", [["send", 0, [1, 2]]]),
        "double-complete: process 0 completes op 2 (line 3)",
    ),
    "values-of-two-sorts": (
        lambda: Story().send(0, (0, 0, 1)).send(0, (0, 0, "a")).poll(1, {0: [[0, 1]]}).poll(2, {0: [[0, "a"]]}),
        "mixed-values: integers and strings at offset 0 of key 0",
    ),
    "unseen-of-two-sorts": (
        lambda: Story().filled().poll(1, ALL).send(0, (0, 3, 1)).send(0, (0, 4, "a")),
        "mixed-values: integers and strings unseen of key 0",
    ),
}


@pytest.mark.parametrize("name", CRASHES)
def test_what_jepsens_checker_throws_at_has_no_verdict(name: str) -> None:
    make, says = CRASHES[name]
    for column in (ASSIGN_WW, ASSIGN_ONLY, SUBSCRIBE_WW):
        verdict = make().verdict(column)
        assert verdict.crash.startswith(says)
        assert None is verdict.valid
        assert [] == [*verdict.findings]


@pytest.mark.parametrize(
    "story",
    [
        Story().filled().line(4, "invoke", "send", [["send", 0, 13]]).poll(1, ALL),
        Story().filled().line("nemesis", "info", "kill", None).line("nemesis", "info", "kill", "n1").poll(1, ALL),
        Story().send(0, (0, 0, "a")).send(0, (0, 1, "b")).poll(1, {0: [[0, "a"], [1, "b"]]}),
        Story().send(0, ("orders", 0, 1)).poll(1, {"orders": [[0, 1]]}),
        Story().send(0, (0, 0, 1)).send(0, (0, 1, "b")).poll(1, {0: [[0, 1], [1, "b"]]}),
        Story().filled().op(1, "crash", None, "info").op(2, "debug-topic-partitions", [0], "info").poll(3, ALL),
    ],
    ids=["open-send", "nemesis", "strings", "named-key", "two-sorts-at-two-offsets", "crash"],
)
def test_what_jepsens_checker_takes_is_valid(story: Story) -> None:
    assert {} == story.counts()

"""
What the fabric saw of followers fits what they and their leaders reported.

A broker sends an event before it sends the frame that follows from it, but the two reach the history on two ways:
on real machines an event may be recorded up to half a second after the frame. The order of the fabric's own ops
is exact, and so is that of one broker's events.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from checkers.definition import Definition
from checkers.facts.moments import anomaly
from checkers.rules.sights.fetches import answered, asked_from, copied, reached
from checkers.rules.sights.questions import answers, asked, questions
from harness.model import Anomaly, Kind, Op

_NAMED_MAX: Final = 5

KINDS: Final = (
    Definition(
        kind=Kind.UNCHECKED,
        formula="append(n, base, role=follower) and no fetch(n -> l, base) since n began to follow l; or "
        "fetch(n -> l, x) where n's log never ended at x until then; or fetched(n -> l, x) without "
        "fetch(n -> l, x); or truncate(n, epoch-answer) where n has not asked l about the newest epoch of its "
        "checkpoint, or no answer to n leads to that offset; or epoch-answer(l, e, x) where no epoch e of l's "
        "log ended at x",
        words="What the fabric saw on a link contradicts what the brokers at its ends reported, so the history "
        "lacks an op, or has one that never was.",
        evidence="fabric fetch, fetched, epoch-question, epoch-answer; broker append, truncate, "
        "follower, checkpoint, recovered",
        unchecked="It is the finding itself. Where brokers report nothing, only the fabric's ops are compared "
        "with each other; where a link's frames are held, delayed or doubled, an old fetch may come late, as it "
        "may where the metadata's answer is late that says where the leader is.",
        source="Jepsen: a history must be possible before it is judged",
    ),
)


def sights(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find fetches, and questions about epochs, that contradict what the brokers at the link's ends reported.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        UNCHECKED anomalies, at most a few of each sort; [] if all of them fit.

    Source:  Jepsen: a history must be possible before it is judged.
    """
    searches = (answered, copied, reached, asked_from, asked, questions, answers)
    return [
        anomaly(ops, Kind.UNCHECKED, f"the history contradicts itself: {text}", proof, [node])
        for search in searches
        for node, text, proof in islice(search(ops), _NAMED_MAX)
    ]

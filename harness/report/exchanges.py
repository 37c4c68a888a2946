"""
The exchange before each truncation: the follower's question, the leader's answer, and the truncation.

A truncation without a question (the old rule truncates to the follower's own high watermark) is listed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.events import EpochAnswer, EpochQuestion, Truncate
from harness.model import Op, Source
from harness.report.lineage_svg import REASONS
from harness.report.text import epoch_text

_Question: TypeAlias = tuple[Op, EpochQuestion]
_Answer: TypeAlias = tuple[Op, EpochAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """
    One question with its answer and its truncation, as text and as ops.

    Attributes:
        question: the op with its event, None if it was not seen; at least one of the three was seen.
        answer: likewise.
        cut: likewise.
    """

    follower: str
    leader: str
    question: _Question | None
    answer: _Answer | None
    cut: tuple[Op, Truncate] | None

    @property
    def ops(self) -> tuple[Op, ...]:
        """The history lines, in order."""
        return tuple(seen[0] for seen in (self.question, self.answer, self.cut) if seen)

    @property
    def asked(self) -> str:
        """The question as text."""
        if self.question is None:
            return "no question was asked"
        asked = self.question[1]
        words = "the undefined epoch (-1)" if asked.leader_epoch == -1 else epoch_text(asked.leader_epoch)
        return f"{self.follower} asks {self.leader}: where does {words} end? (v{asked.version})"

    @property
    def answered(self) -> str:
        """The answer as text."""
        if self.answer is None:
            return "–" if self.question is None else "no answer was seen"
        answer = self.answer[1]
        if answer.error:
            return f"error {answer.error}"
        where = "undefined (-1)" if answer.end_offset == -1 else f"at {answer.end_offset}"
        return f"{epoch_text(answer.leader_epoch)} ends {where}" if answer.leader_epoch >= 0 else where

    @property
    def did(self) -> str:
        """The truncation as text."""
        if self.cut is None:
            return "no cut was reported"
        cut = self.cut[1]
        reason = REASONS.get(cut.reason, cut.reason)
        if cut.to >= cut.start and cut.reason != "full":
            return f"{self.follower} keeps all {cut.start} records: nothing beyond {reason.removeprefix('to ')}"
        return f"{self.follower} cuts {cut.start} → {cut.to}, {reason}"


def exchanges_of(ops: Sequence[Op]) -> tuple[Exchange, ...]:
    """Return the questions of a history with their answers and truncations, in the order of their first op."""
    found: list[Exchange] = []
    waiting: dict[tuple[str, str, str, int], list[_Question]] = {}
    answered: dict[tuple[str, str, int], list[tuple[_Question, _Answer]]] = {}
    for op in ops:
        if op.source not in (Source.FABRIC, Source.BROKER):
            continue
        match op.event:
            case EpochQuestion() as question:
                waiting.setdefault((*question.link, question.topic, question.partition), []).append((op, question))
            case EpochAnswer() as answer:
                asked = waiting.get((*answer.link, answer.topic, answer.partition))
                if asked:
                    place = (answer.link[0], answer.topic, answer.partition)
                    answered.setdefault(place, []).append((asked.pop(0), (op, answer)))
            case Truncate() as cut:
                pairs = answered.get((op.process, cut.topic, cut.partition))
                first, second = pairs.pop(0) if pairs else (None, None)
                if first or cut.start:  # the truncation of an empty log without a question shows nothing
                    found.append(_exchange(op.process, first, second, (op, cut)))
    found += [_exchange(q[1].link[0], q, a, None) for pairs in answered.values() for q, a in pairs]
    found += [_exchange(q[1].link[0], q, None, None) for asked in waiting.values() for q in asked]
    return tuple(sorted(found, key=lambda e: e.ops[0].index))


def mentioned(exchanges: Iterable[Exchange]) -> frozenset[int]:
    """Return the indexes of the exchanges' ops."""
    return frozenset(op.index for exchange in exchanges for op in exchange.ops)


def _exchange(
    follower: str, question: _Question | None, answer: _Answer | None, cut: tuple[Op, Truncate] | None
) -> Exchange:
    leader = question[1].link[1] if question else ""
    return Exchange(follower=follower, leader=leader, question=question, answer=answer, cut=cut)

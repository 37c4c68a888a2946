"""
What the fabric saw of each truncation: the follower's question, the leader's answer, and the cut that followed.

A cut that nobody was asked about (the old rule cuts to the follower's own high watermark) stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.model import Op, Source
from harness.report.lineage_svg import REASONS
from harness.report.text import epoch_text

_Key = tuple[str, str, Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """
    One question with its answer and its cut, in words and with the ops that they were read from.

    Shapes:  each of the ops is None where it was not seen; at least one is there.
    """

    follower: str
    leader: str
    question: Op | None
    answer: Op | None
    cut: Op | None

    @property
    def ops(self) -> tuple[Op, ...]:
        """The history lines, in their order."""
        return tuple(op for op in (self.question, self.answer, self.cut) if op)

    @property
    def asked(self) -> str:
        """The question in words."""
        if self.question is None:
            return "nobody was asked"
        epoch = self.question.value.get("leader_epoch")
        version = self.question.value.get("version")
        words = "the undefined epoch (-1)" if epoch == -1 else epoch_text(epoch)
        return f"{self.follower} asks {self.leader}: where does {words} end?" + (
            f" (v{version})" if version is not None else ""
        )

    @property
    def answered(self) -> str:
        """The answer in words."""
        if self.answer is None:
            return "–" if self.question is None else "no answer was seen"
        value = self.answer.value
        if value.get("error") not in (None, 0, "", "NONE"):
            return f"error {value['error']}"
        end = value.get("end_offset")
        where = "undefined (-1)" if end == -1 else f"at {end}"
        epoch = value.get("leader_epoch")
        return f"{epoch_text(epoch)} ends {where}" if isinstance(epoch, int) and epoch >= 0 else where

    @property
    def did(self) -> str:
        """The cut in words."""
        if self.cut is None:
            return "no cut was reported"
        value = self.cut.value
        reason = REASONS.get(str(value.get("reason")), str(value.get("reason")))
        if int(value["to"]) >= int(value["from"]) and value["reason"] != "full":
            return (
                f"{self.follower} keeps all {value['from']} records: nothing beyond {reason.removeprefix('to ')}"
            )
        return f"{self.follower} cuts {value['from']} → {value['to']}, {reason}"


def exchanges_of(ops: Sequence[Op]) -> tuple[Exchange, ...]:
    """Pair questions, answers and cuts of a history, in the order in which they began."""
    found: list[Exchange] = []
    waiting: dict[_Key, list[Op]] = {}
    answered: dict[tuple[str, Any, Any], list[tuple[Op, Op]]] = {}
    for op in ops:
        place = (op.value.get("topic"), op.value.get("partition"))
        if op.source is Source.FABRIC and op.f == "epoch-question":
            waiting.setdefault((*_link(op), *place), []).append(op)
        elif op.source is Source.FABRIC and op.f == "epoch-answer":
            asked = waiting.get((*_link(op), *place))
            if asked:
                answered.setdefault((_link(op)[0], *place), []).append((asked.pop(0), op))
        elif op.source is Source.BROKER and op.f == "truncate":
            pairs = answered.get((op.process, *place))
            question, answer = pairs.pop(0) if pairs else (None, None)
            if question or op.value["from"]:  # an empty log that was not asked about has no story
                found.append(_exchange(op.process, question, answer, op))
    found += [_exchange(q.value["link"][0], q, a, None) for pairs in answered.values() for q, a in pairs]
    found += [_exchange(q.value["link"][0], q, None, None) for asked in waiting.values() for q in asked]
    return tuple(sorted(found, key=lambda e: e.ops[0].index))


def mentioned(exchanges: Iterable[Exchange]) -> frozenset[int]:
    """The history indexes that the exchanges were read from."""
    return frozenset(op.index for exchange in exchanges for op in exchange.ops)


def _link(op: Op) -> tuple[str, str]:
    first, second = op.value.get("link") or ("?", "?")
    return str(first), str(second)


def _exchange(follower: str, question: Op | None, answer: Op | None, cut: Op | None) -> Exchange:
    leader = _link(question)[1] if question else ""
    return Exchange(follower=str(follower), leader=leader, question=question, answer=answer, cut=cut)

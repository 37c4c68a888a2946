"""
What the links tell of what passed: truncation questions and answers, and followers' fetch offsets.

A frame is told of when it is handed on: one that is held, dropped or cut was never heard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from targets.broker.core.messages import (
    FetchRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from targets.broker.core.rules import Rules, TruncateTo
from targets.simulator.pipe import REQUESTS, Frame, Pipe


class Witness:
    """
    Tell of frames, in the words of docs/history.md.

    Shapes:  epoch_version is the version of OffsetForLeaderEpoch that brokers speak: 0 has no epoch in answers.
    """

    def __init__(self, rules: Rules) -> None:
        self.epoch_version = epoch_version(rules)

    def passed(
        self, record: Callable[[str, Mapping[str, Any]], None], pipe: Pipe, direction: int, frame: Frame
    ) -> None:
        """Record a frame that is handed on, when it is one that the history wants."""
        link = list(pipe.link)
        if isinstance(frame.request, FetchRequest):
            if direction == REQUESTS:
                self._fetch(record, pipe, frame.request)
        elif isinstance(frame.request, OffsetForLeaderEpochRequest):
            if direction == REQUESTS:
                for question in frame.request.questions:
                    place = {"link": link, "topic": question.tp.topic, "partition": question.tp.partition}
                    asked = {"leader_epoch": question.leader_epoch, "version": self.epoch_version}
                    record("epoch-question", {**place, **asked})
                return
            response = frame.body[1]
            if isinstance(response, OffsetForLeaderEpochResponse):
                for answer in response.answers:
                    place = {"link": link, "topic": answer.tp.topic, "partition": answer.tp.partition}
                    epoch = answer.leader_epoch if self.epoch_version else -1
                    told = {"error": int(answer.error), "leader_epoch": epoch, "end_offset": answer.end_offset}
                    record("epoch-answer", {**place, **told})

    def _fetch(self, record: Callable[[str, Mapping[str, Any]], None], pipe: Pipe, request: FetchRequest) -> None:
        """Record a follower's fetch offset: a connection's first, and from then on when it changes."""
        for part in request.partitions:
            key = (part.tp.topic, part.tp.partition)
            if pipe.last_offsets.get(key) != part.fetch_offset:
                pipe.last_offsets[key] = part.fetch_offset
                place = {"link": list(pipe.link), "topic": part.tp.topic, "partition": part.tp.partition}
                record("fetch", {**place, "offset": part.fetch_offset})


def epoch_version(rules: Rules) -> int:
    """Give the version of OffsetForLeaderEpoch that carries what the rules say, as the releases had it."""
    if rules.fence_truncation_query:
        return 3 if rules.fence_broker_epoch else 2
    return 1 if rules.truncate_to is TruncateTo.EPOCH_WALK else 0

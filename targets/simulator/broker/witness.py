"""
Records the frames that links pass: truncation requests and answers, and followers' fetch offsets.

A frame is recorded when it is delivered; a held, dropped or cut frame is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable

from harness import events
from targets.broker.core.messages import (
    FetchRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from targets.simulator.broker.wire import WirePipe
from targets.simulator.engine.network import Recorder
from targets.simulator.engine.pipe import REQUESTS, Frame, Pipe


class Witness:
    """
    Record frames as events of docs/history.md.

    Args:
        epoch_version: returns the version of OffsetForLeaderEpoch on a link: 0 has no epoch in answers.
    """

    def __init__(self, epoch_version: Callable[[tuple[str, str]], int]) -> None:
        self._epoch_version = epoch_version

    def passed(self, record: Recorder, pipe: Pipe, direction: int, frame: Frame) -> None:
        """Record a delivered frame if the history has an event for it."""
        if not isinstance(pipe, WirePipe):
            return
        if isinstance(frame.request, FetchRequest):
            if direction == REQUESTS:
                self._fetch(record, pipe, frame.request)
        elif isinstance(frame.request, OffsetForLeaderEpochRequest):
            if direction == REQUESTS:
                pipe.question_version = self._epoch_version(pipe.link)
                for question in frame.request.questions:
                    asked = events.EpochQuestion(
                        link=pipe.link,
                        topic=question.tp.topic,
                        partition=question.tp.partition,
                        leader_epoch=question.leader_epoch,
                        version=pipe.question_version,
                    )
                    record(asked)
                return
            response = frame.body[1]
            if isinstance(response, OffsetForLeaderEpochResponse):
                for answer in response.answers:
                    answered = events.EpochAnswer(
                        link=pipe.link,
                        topic=answer.tp.topic,
                        partition=answer.tp.partition,
                        error=int(answer.error),
                        leader_epoch=answer.leader_epoch if pipe.question_version else -1,
                        end_offset=answer.end_offset,
                    )
                    record(answered)

    def _fetch(self, record: Recorder, pipe: WirePipe, request: FetchRequest) -> None:
        """Record a follower's fetch offset: a connection's first, and from then on when it changes."""
        for part in request.partitions:
            topic, partition, offset = part.tp.topic, part.tp.partition, part.fetch_offset
            if pipe.last_offsets.get((topic, partition)) != offset:
                pipe.last_offsets[topic, partition] = offset
                record(events.Fetch(link=pipe.link, topic=topic, partition=partition, offset=offset))

"""A client's deletion of records in a simulated world, sent once."""

from __future__ import annotations

from dataclasses import replace

from harness import events
from harness.kafka_errors import surely_not_deleted
from harness.model import OpType
from targets.broker.core.messages import (
    DeletePartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ErrorCode,
    Request,
    Response,
    TopicPartition,
)
from targets.simulator.broker.clients.operations import Operation
from targets.simulator.broker.world import World


class DeleteRecords(Operation):
    """
    Delete the records before an offset; -1: all that are committed.

    Attributes:
        low_watermark: as the answer has it, -1 until then.
    """

    def __init__(
        self, world: World, name: str, tp: TopicPartition, before: int, *, timeout_s: float | None = None
    ) -> None:
        """Create the operation."""
        super().__init__(world, name, timeout_s=timeout_s)
        self.low_watermark = -1
        self._tp = tp
        self._event = events.DeleteRecords(topic=tp.topic, partition=tp.partition, before=before)
        self.record(OpType.INVOKE, self._event)
        self.ask()

    def target(self) -> str | None:
        """Return the leader."""
        return self.leader_of(self._tp)

    def request(self) -> Request:
        """Return the DeleteRecords request."""
        part = DeletePartition(tp=self._tp, offset=self._event.before)
        return DeleteRecordsRequest(partitions=(part,), timeout_ms=self.left_ms)

    def answered(self, response: Response) -> None:
        """Record the answer, and end."""
        assert isinstance(response, DeleteRecordsResponse), f"{response!r} answers no DeleteRecords"
        result = response.results[0]
        if result.error is ErrorCode.NONE:
            self.low_watermark = result.low_watermark
            self.record(OpType.OK, replace(self._event, low_watermark=result.low_watermark))
            self.end()
            return
        type_ = OpType.FAIL if surely_not_deleted(result.error) else OpType.INFO
        self._fail(type_, result.error.name)

    def failed(self, error: str, *, sent: bool) -> None:
        """Fail: if it was sent, records may have been deleted."""
        self._fail(OpType.INFO if sent else OpType.FAIL, error)

    def _fail(self, type_: OpType, error: str) -> None:
        self.record(type_, replace(self._event, error=error))
        self.end(error)

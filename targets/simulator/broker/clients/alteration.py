"""A client's change of a topic's setting in a simulated world, sent once."""

from __future__ import annotations

from dataclasses import replace

from harness import events
from harness.model import OpType
from targets.broker.core.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlteredSetting,
    ErrorCode,
    Request,
    Response,
    TopicPartition,
)
from targets.simulator.broker.clients.operations import Operation
from targets.simulator.broker.world import World

# Kafka's number of a resource that is a topic.
_TOPIC = 2


class AlterTopic(Operation):
    """Give a topic this setting, and no other of its own."""

    def __init__(self, world: World, name: str, topic: str, setting: str, to: str) -> None:
        """Create the operation."""
        super().__init__(world, name)
        self._event = events.AlterTopic(topic=topic, setting=setting, to=to)
        self.record(OpType.INVOKE, self._event)
        self.ask()

    def target(self) -> str | None:
        """Return the leader of the topic's first partition; any broker would do."""
        return self.leader_of(TopicPartition(self._event.topic, 0))

    def request(self) -> Request:
        """Return the AlterConfigs request."""
        settings = (AlteredSetting(self._event.setting, self._event.to),)
        topic = AlteredResource(kind=_TOPIC, name=self._event.topic, settings=settings)
        return AlterConfigsRequest(resources=(topic,), incremental=False, validate_only=False)

    def answered(self, response: Response) -> None:
        """Record the answer, and end."""
        assert isinstance(response, AlterConfigsResponse), f"{response!r} answers no AlterConfigs"
        result = response.results[0]
        if result.error is ErrorCode.NONE:
            self.record(OpType.OK, self._event)
            self.end()
        else:
            type_ = OpType.INFO if result.error is ErrorCode.REQUEST_TIMED_OUT else OpType.FAIL
            self._fail(type_, f"{result.error.name} {result.error_text}".strip())

    def failed(self, error: str, *, sent: bool) -> None:
        """Fail: if it was sent, the setting may have been changed."""
        self._fail(OpType.INFO if sent else OpType.FAIL, error)

    def _fail(self, type_: OpType, error: str) -> None:
        self.record(type_, replace(self._event, error=error))
        self.end(error)

"""A client's request for more partitions of a topic in a simulated world, sent once."""

from __future__ import annotations

from dataclasses import replace

from harness import events
from harness.model import OpType
from targets.broker.core.messages import (
    CreatePartitionsRequest,
    ErrorCode,
    MorePartitions,
    Request,
    Response,
    TopicErrors,
)
from targets.broker.core.zookeeper import CONTROLLER
from targets.simulator.broker.clients.operations import DOUBTFUL, Operation
from targets.simulator.broker.world import World


class AddPartitions(Operation):
    """Add partitions to a topic."""

    def __init__(self, world: World, name: str, event: events.AddPartitions) -> None:
        """Create the operation."""
        super().__init__(world, name)
        self._event = event
        self._more = MorePartitions(
            topic=event.topic,
            count=event.first + len(event.assignments),
            assignments=tuple(tuple(world.ids[node] for node in nodes) for nodes in event.assignments),
        )
        self.record(OpType.INVOKE, event)
        self.ask()

    def target(self) -> str | None:
        """Return the controller."""
        node = self.world.zookeeper.tree.nodes.get(CONTROLLER)
        return None if node is None else self.world.name_of(int(node.data))

    def request(self) -> Request:
        """Return the CreatePartitions request."""
        return CreatePartitionsRequest(topics=(self._more,), timeout_ms=self.left_ms)

    def answered(self, response: Response) -> None:
        """Record the answer, and end."""
        assert isinstance(response, TopicErrors), f"{response!r} is not an answer to a CreatePartitions request"
        (_, error, text), *_ = response.errors
        if error is ErrorCode.NONE:
            self._over(OpType.OK, "")
        else:
            self._over(OpType.INFO if error in DOUBTFUL else OpType.FAIL, f"{error.name} {text}".strip())

    def failed(self, error: str, *, sent: bool) -> None:
        """End: if it was sent, the topic may have them."""
        self._over(OpType.INFO if sent else OpType.FAIL, error)

    def _over(self, type_: OpType, error: str) -> None:
        self.record(type_, replace(self._event, error=error))
        self.end(error)

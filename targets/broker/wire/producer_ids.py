"""InitProducerId (api 22) of clients."""

from __future__ import annotations

from typing import Any

from targets.broker.core.messages import InitProducerIdRequest, InitProducerIdResponse
from targets.broker.wire.entities import NO_TIME, Schema, fill, kio_error
from targets.broker.wire.produce import SplitBatches


def read_request(entity: Any, _split: SplitBatches) -> InitProducerIdRequest:
    """Convert kio's entity to the core's request; only a transactional producer may keep the id that it names."""
    return InitProducerIdRequest(transactional=entity.transactional_id is not None)


def write_response(entity: Schema, response: InitProducerIdResponse) -> Any:
    """Convert the core's response to kio's entity of that version."""
    return fill(
        entity,
        throttle_time=NO_TIME,
        error_code=kio_error(response.error),
        producer_id=response.producer_id,
        producer_epoch=response.producer_epoch,
    )

"""What is written in one go is what kio writes field by field, in every version of every message."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_writer

from targets.broker.wire import versions
from targets.broker.wire.entities import request_type, response_type
from targets.broker.wire.versions import ROWS
from targets.broker.wire.writing import _writer_of, entity_bytes

ENTITIES = [
    of(key, version)
    for key, row in ROWS.items()
    for version in range(row.first, row.last + 1)
    for of in (request_type, response_type)
    if key != versions.PRODUCE and (key != versions.FETCH or (of, version) == (request_type, row.last))
]


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: f"{entity.__name__}-v{entity.__version__}")
@given(data=st.data())
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_entity_is_written_as_kio_writes_it(entity: Any, data: st.DataObject) -> None:
    drawn = data.draw(st.from_type(entity))
    chunks = io.BytesIO()
    entity_writer(entity)(chunks, drawn)
    assert chunks.getvalue() == entity_bytes(drawn)


def test_messages_about_many_partitions_are_none_that_kio_writes() -> None:
    of_many = (versions.LEADER_AND_ISR, versions.STOP_REPLICA, versions.LIST_OFFSETS, versions.METADATA)
    for key in (*of_many, versions.OFFSET_FOR_LEADER_EPOCH):
        assert _writer_of(response_type(key, ROWS[key].last)) is not None
    for key in (*of_many[:3], versions.OFFSET_FOR_LEADER_EPOCH, versions.FETCH):
        assert _writer_of(request_type(key, ROWS[key].last)) is not None

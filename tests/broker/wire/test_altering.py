"""Kafka's bytes of settings that are altered and described, held against kio's own."""

from __future__ import annotations

import pytest

from targets.broker.core import messages as m
from targets.broker.log import split_produced
from targets.broker.wire import versions
from targets.broker.wire.codec import decode_request, encode_response
from tests.broker.wire.kio_side import a_frame, incoming, kio_response
from tests.broker.wire.samples import CLIENT_RESPONSES

ALTER, INCREMENTAL = versions.ALTER_CONFIGS, versions.INCREMENTAL_ALTER_CONFIGS
DESCRIBE = versions.DESCRIBE_CONFIGS
VERSIONS = [(key, v) for key in (ALTER, INCREMENTAL) for v in range(versions.ROWS[key].last + 1)]


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_what_is_to_be_altered_is_read(key: int, version: int) -> None:
    """Source: KIP-339: the incremental request has an operation with each setting."""
    operation = m.AlterOperation.APPEND if key == INCREMENTAL else m.AlterOperation.SET
    setting = m.AlteredSetting("retention.ms", "1", operation)
    expected = m.AlterConfigsRequest(
        resources=(m.AlteredResource(kind=2, name="t", settings=(setting,)),),
        incremental=key == INCREMENTAL,
        validate_only=True,
    )
    assert expected == decode_request(a_frame(key, version), split_batches=split_produced).request


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_answer_to_alterations(key: int, version: int) -> None:
    answer = kio_response(encode_response(incoming(key, version), CLIENT_RESPONSES[key]), key, version)
    found = [(r.resource_type, r.resource_name, r.error_code, r.error_message) for r in answer.responses]
    assert [(2, "a", 0, None), (4, "9", 42, "a broker")] == found


@pytest.mark.parametrize("version", range(versions.ROWS[DESCRIBE].first, versions.ROWS[DESCRIBE].last + 1))
def test_topics_own_value_stands_before_the_brokers(version: int) -> None:
    """Source: KIP-226: 1 is a topic's own setting, 4 one of the broker's file; the first synonym is in force."""
    answer = encode_response(incoming(DESCRIBE, version), CLIENT_RESPONSES[DESCRIBE])
    entries = kio_response(answer, DESCRIBE, version).results[0].configs
    assert [("7", 4, True), ("2", 1, False)] == [(e.value, e.config_source, e.read_only) for e in entries]
    assert [[("7", 4)], [("2", 1), ("1", 4)]] == [[(s.value, s.source) for s in e.synonyms] for e in entries]

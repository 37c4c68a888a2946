"""InitProducerId in the versions of clients, and the protocols that have it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from targets.broker.core.messages import InitProducerIdRequest
from targets.broker.core.rules import PROTOCOLS
from targets.broker.log import split_produced
from targets.broker.wire import decode_request, encode_response, versions
from targets.broker.wire.entities import fill, request_type
from targets.broker.wire.versions import INIT_PRODUCER_ID, client_rows
from tests.broker.wire.kio_side import incoming, kio_response, request_frame
from tests.broker.wire.samples import CLIENT_RESPONSES


@pytest.mark.parametrize("transactional_id", [None, "t"])
@pytest.mark.parametrize("version", range(5))
def test_request_says_whether_its_producer_is_transactional(version: int, transactional_id: str | None) -> None:
    sent = fill(
        request_type(INIT_PRODUCER_ID, version),
        transactional_id=transactional_id,
        transaction_timeout=timedelta(seconds=60),
        producer_id=3,
        producer_epoch=1,
    )
    found = decode_request(request_frame(INIT_PRODUCER_ID, version, sent), split_batches=split_produced)
    assert InitProducerIdRequest(transactional=transactional_id is not None) == found.request


@pytest.mark.parametrize("version", range(5))
def test_answer_has_id_and_epoch(version: int) -> None:
    frame = encode_response(incoming(INIT_PRODUCER_ID, version), CLIENT_RESPONSES[INIT_PRODUCER_ID])
    found = kio_response(frame, INIT_PRODUCER_ID, version)
    assert (0, 2**40, 3) == (found.error_code, found.producer_id, found.producer_epoch)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_protocols_of_releases_since_0_11_have_it(protocol: str) -> None:
    """Source: KIP-98, in 0.11.0."""
    rows = client_rows(protocol, PROTOCOLS[protocol])
    assert (protocol != "hw") == (INIT_PRODUCER_ID in rows) == PROTOCOLS[protocol].idempotence


def test_rule_brings_it_to_a_protocol_without_it_and_takes_it_from_none() -> None:
    """A leader that appends what is sent again has the bug of a release that gives ids."""
    assert versions.INIT_PRODUCER_ID in client_rows("hw", replace(PROTOCOLS["hw"], idempotence=True))
    assert versions.INIT_PRODUCER_ID in client_rows("kip380", replace(PROTOCOLS["kip380"], idempotence=False))

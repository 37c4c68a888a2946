"""A request between brokers names its receiver in its client id, whatever its version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.events import ANYBODY
from targets.broker.core.messages import NO_FETCH_SESSION, NO_SESSION_EPOCH, FetchRequest
from targets.broker.log import split_produced
from targets.broker.wire.addressing import client_id_of, receiver_of
from targets.broker.wire.codec import decode_request, encode_request
from targets.broker.wire.versions import ROWS
from tests.broker.wire.samples import PEER

EVERY = [(key, version) for key in PEER for version in range(ROWS[key].first, ROWS[key].last + 1)]
NOBODY = [
    *(None, "", "8", "rdkafka", "broker-1-fetcher-0", "broker-1-to-8", "broker--fetcher-to-8"),
    *("broker-1-fetcher-to-", "broker-1-fetcher-to-8x", "xbroker-1-fetcher-to-8", "broker-1-f-to-٨"),
    "broker-1-fetcher-to-12345678901",
]


@pytest.mark.parametrize(("key", "version"), EVERY, ids=str)
def test_every_version_of_what_brokers_ask_names_the_receiver(key: int, version: int) -> None:
    client_id = client_id_of(1, channel="controller", receiver=8)
    request, _ = PEER[key]
    if isinstance(request, FetchRequest):  # the older versions have no sessions
        request = replace(request, session_id=NO_FETCH_SESSION, session_epoch=NO_SESSION_EPOCH)
    frame = encode_request(request, version=version, correlation_id=1, client_id=client_id)
    assert 8 == receiver_of(decode_request(frame[4:], split_batches=split_produced).client_id)


@pytest.mark.parametrize("receiver", [0, 1, 8, 2**31 - 1])
@pytest.mark.parametrize("channel", ["controller", "fetcher", "epoch-to-9"])
def test_receiver_that_was_written_is_read(channel: str, receiver: int) -> None:
    assert receiver == receiver_of(client_id_of(3, channel=channel, receiver=receiver))


@pytest.mark.parametrize("client_id", NOBODY)
def test_any_other_client_id_names_nobody(client_id: str | None) -> None:
    assert ANYBODY == receiver_of(client_id)

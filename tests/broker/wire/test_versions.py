from __future__ import annotations

from itertools import product

import pytest

from targets.broker.core.rules import PROTOCOLS, as_text, with_rule
from targets.broker.wire import versions
from targets.broker.wire.entities import request_type, response_type
from targets.broker.wire.versions import ROWS, client_rows, peer_rows

# Fetch, ListOffsets, LeaderAndISR, StopReplica, OffsetForLeaderEpoch.
KEYS = (1, 2, 4, 5, 23)
# Source: Kafka's inter.broker.protocol.version and the versions that each release uses under it; those of kip380
# are the first that can carry a topic's id.
LADDER = {
    "hw": (5, 1, 0, 0, None),
    "kip101": (5, 1, 0, 0, 0),
    "kip101-text": (5, 1, 0, 0, 0),
    "kip279": (8, 2, 0, 0, 1),
    "kip279-2.0.1": (8, 2, 0, 0, 1),
    "kip320": (10, 4, 0, 0, 2),
    "kip380": (12, 6, 2, 2, 4),
}


def newest(protocol: str, *changes: str) -> tuple[int | None, ...]:
    """Return the newest version of each of KEYS between brokers, None for an unknown API."""
    rules = PROTOCOLS[protocol]
    for change in changes:
        rules = with_rule(rules, change)
    rows = peer_rows(protocol, rules)
    return tuple(rows[key].last if key in rows else None for key in KEYS)


@pytest.mark.parametrize("key", ROWS)
def test_every_version_served_has_its_messages(key: int) -> None:
    row = ROWS[key]
    for version in range(row.first, row.last + 1):
        assert key == request_type(key, version).__api_key__
        assert key == response_type(key, version).__api_key__


@pytest.mark.parametrize(("rows", "protocol"), list(product((peer_rows, client_rows), PROTOCOLS)))
def test_what_is_told_can_be_served(rows: object, protocol: str) -> None:
    assert callable(rows)
    for key, row in rows(protocol, PROTOCOLS[protocol]).items():
        assert ROWS[key].advertised_first == row.advertised_first <= ROWS[key].first == row.first
        assert row.first <= row.last <= ROWS[key].last


def test_every_protocol_is_in_the_ladder() -> None:
    assert list(PROTOCOLS) == list(LADDER)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_brokers_speak_the_versions_of_the_release_that_the_protocol_stands_for(protocol: str) -> None:
    """Source: KIP-101, Public Interfaces."""
    assert LADDER[protocol] == newest(protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rules_of_a_protocol_need_no_more_than_its_release_knew(protocol: str) -> None:
    """A release's versions suffice for its own rules: `_needed` never raises the versions of a protocol."""
    for key, row in peer_rows(protocol, PROTOCOLS[protocol]).items():
        assert row.last == ROWS[key].peer.get(protocol, ROWS[key].last)


@pytest.mark.parametrize(
    ("protocol", "change", "spoken"),
    [
        ("hw", "truncate_to=one_answer", (5, 1, 0, 0, 0)),
        ("kip101", "truncate_to=epoch_walk", (5, 1, 0, 0, 1)),
        ("kip279", "fence_truncation_query=yes", (8, 2, 0, 0, 2)),
        ("kip279", "fence_fetch=yes", (9, 2, 0, 0, 1)),
        ("kip279", "fence_high_watermark=yes", (9, 2, 0, 0, 1)),
        ("kip279", "fence_isr_join=yes", (9, 2, 0, 0, 1)),
        ("kip320", "fence_broker_epoch=yes", (10, 4, 1, 1, 2)),
        ("kip320", "fence_fetch=no", (10, 4, 0, 0, 2)),
        ("kip320", "topic_identity=yes", (12, 6, 2, 2, 4)),
        ("kip101", "truncate_to=high_watermark", (5, 1, 0, 0, 0)),
    ],
)
def test_rule_turned_on_alone_brings_the_version_that_carries_it(
    protocol: str, change: str, spoken: tuple[int | None, ...]
) -> None:
    name, _, value = change.partition("=")
    assert value != as_text(PROTOCOLS[protocol])[name]
    assert spoken == newest(protocol, change)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_clients_read_and_write_alike_under_every_protocol_and_ask_for_epochs_where_brokers_do(
    protocol: str,
) -> None:
    rows = client_rows(protocol, PROTOCOLS[protocol])
    assert (8, 11, 5) == tuple(rows[key].last for key in (versions.PRODUCE, versions.FETCH, versions.LIST_OFFSETS))
    epochs = rows.get(versions.OFFSET_FOR_LEADER_EPOCH)
    known = LADDER[protocol][-1]
    assert (None if known is None else min(known, 3)) == (epochs and epochs.last)

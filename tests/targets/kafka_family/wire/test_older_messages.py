"""A history of before names messages as Kafka does; it is read with the general words, where there is one."""

from __future__ import annotations

import json

import pytest

from harness.events import Hold
from harness.model import Op

LINE = {
    "index": 0,
    "time_ns": 5,
    "source": "fabric",
    "process": "fabric",
    "type": "info",
    "f": "hold",
    "value": {"link": ["A", "zookeeper"], "direction": "request", "from_offset": None, "topic": "log"},
}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Fetch", "fetch"),
        ("LeaderAndIsr", "command"),
        ("StopReplica", "stop-command"),
        ("OffsetForLeaderEpoch", "epoch-question"),
        ("ZooKeeper", "metadata-request"),
        ("UpdateMetadata", "UpdateMetadata"),
        ("command", "command"),
    ],
)
def test_message_of_a_rule_has_its_word(before: str, now: str) -> None:
    op = Op.from_json(json.dumps({**LINE, "value": {**LINE["value"], "api": before}}))  # type: ignore[dict-item]
    assert isinstance(op.event, Hold)
    assert (now, ("A", "metadata"), "log") == (op.event.api, op.event.link, op.event.topic)

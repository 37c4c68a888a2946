"""The clients of Kafka's family as the part of a target."""

from __future__ import annotations

import pytest

from harness.history.file import History
from harness.model import UsageError
from harness.registry import load
from targets.broker_target.target import TARGET
from targets.kafka_family.clients.part import CLIENTS


def test_clients_are_known_by_the_library_they_stand_on() -> None:
    assert tuple(CLIENTS) == TARGET.clients.names
    for name, module in CLIENTS.items():
        made = load("client", CLIENTS, name, "CLIENT")
        assert f"targets.kafka_family.clients.{name}" == module == made.__module__


def test_client_that_a_target_does_not_have_is_refused(history: History) -> None:
    with pytest.raises(UsageError, match="unknown client 'telnet': expected one of librdkafka, raw"):
        TARGET.clients.make("telnet", history=history, bootstrap=list)

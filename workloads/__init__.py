"""Workloads' clients: one file and one line for each client library. Scenarios are data, below scenarios/."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from workloads.clients.librdkafka import LibrdkafkaClient
from workloads.clients.raw import RawClient

CLIENTS: Final = {"raw": RawClient, "librdkafka": LibrdkafkaClient}
SCENARIOS: Final = Path(__file__).parent / "scenarios"

"""The folder of the log directories that Apache Kafka wrote; tests/make_kafka_logs.py makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).parent / "data"

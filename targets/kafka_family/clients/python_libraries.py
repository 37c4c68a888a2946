"""What kafka-python and aiokafka, which began as a copy of it, have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.clients.library import Came
from harness.workload.plan import ConsumerPlan, Place


def reader_settings(plan: ConsumerPlan) -> dict[str, Any]:
    """Return what every consumer of a library in Python is set to: no group, no position of its own choosing."""
    return {
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",  # so that a position out of range is seen
        "check_crcs": True,
        "fetch_max_wait_ms": plan.wait_ms,
        "fetch_max_bytes": plan.max_bytes,
        "max_partition_fetch_bytes": plan.max_bytes,
    }


def came_of(polled: Mapping[Any, Iterable[Any]]) -> Came:
    """Return what a poll brought, of a library that gives (topic, partition) -> records."""
    came = Came()
    for where, records in polled.items():
        for record in records:
            came.add(Place(*where), record.offset, record.value, record.headers)
    return came

"""Print docs/limits.md, from the broker's table of quotas."""

from __future__ import annotations

from typing import Final

from harness.docs import markdown
from targets.broker.core.state import ASK_OPS_MAX, ASKS_TOGETHER_MAX, DELETES_TOGETHER_MAX, WRITES_IN_FLIGHT_MAX
from targets.broker.files import KEPT_BACK
from targets.broker.inbound import ITEMS_MAX, TURN_REQUESTS_MAX, WORK_MAX
from targets.broker.limits import ROWS, Limits

_UNITS: Final = (("_bytes_max", "bytes"), ("_ms_max", "ms"))


def broker_limits() -> str:
    """Return docs/limits.md."""
    values = Limits()
    rows = [
        (
            f"`{row.name}`",
            f"`{row.kafka}`" if row.kafka else "",
            _value(row.name, getattr(values, row.name)),
            row.counts,
            row.beyond,
        )
        for row in ROWS
    ]
    return markdown.page(
        "Limits of the broker",
        "targets/broker/limits.py",
        "What one client can take from all others is bounded: memory, files, and the broker's time.\n"
        "Beyond a limit the client is refused, and the broker goes on.\n"
        'A broker\'s configuration may change each under `"limits"`: `{"limits": {"connections_max": 100}}`.',
        markdown.table(("limit", "Kafka's name", "default", "counts", "beyond it"), rows),
        f"Files: a broker raises its limit of open files as far as the system lets it. If that is not enough, a "
        f"quarter is for logs, an eighth for brokers' connections, {KEPT_BACK} for everything else, and the rest "
        "for clients' connections; the log tells.",
        "## Time",
        "One loop serves all connections, so nothing in it may take long:",
        markdown.table(
            ("work", "at most, before others have their turn"),
            (
                ("requests of one connection that came at once", TURN_REQUESTS_MAX),
                ("records that are checked in a Produce; with more, a thread checks them", WORK_MAX),
                ("entries of an answer; with more, a thread writes it", ITEMS_MAX),
                ("operations on ZooKeeper that are sent at once", ASK_OPS_MAX),
                ("decisions of a controller that are on their way to ZooKeeper", WRITES_IN_FLIGHT_MAX),
                ("partitions that a follower asks for in one request", ASKS_TOGETHER_MAX),
                ("nodes that are deleted together; a larger topic goes in parts", DELETES_TOGETHER_MAX),
            ),
        ),
        "A long poll waits without reading: an append looks at the sizes in the log's index, for those alone who "
        "wait for that partition. Who is woken together and reads the same place shares one read.",
    )


def _value(name: str, value: int) -> str:
    unit = next((unit for ending, unit in _UNITS if name.endswith(ending)), "")
    return f"{value:,} {unit}".strip()

"""Print docs/limits.md, from the broker's table of quotas."""

from __future__ import annotations

from typing import Final

from harness.docs import markdown
from targets.broker.core.compaction import GROUP_FILES_MAX
from targets.broker.core.state import (
    ASK_OPS_MAX,
    ASKS_TOGETHER_MAX,
    DELETES_TOGETHER_MAX,
    FIRSTS_TOGETHER_MAX,
    WRITES_IN_FLIGHT_MAX,
)
from targets.broker.files import KEPT_BACK
from targets.broker.inbound import ITEMS_MAX, TURN_REQUESTS_MAX, WORK_MAX
from targets.broker.limits import ROWS, Limits
from targets.broker.log import checkpoint
from targets.broker.log.beneath import NAMES_MAX
from targets.broker.log.discards import STEP_FILES
from targets.broker.log.names import BASE_OFFSET_MAX
from targets.broker.log.options import APPEND_FILES_MAX
from targets.broker.log.together import THREADS_MAX

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
                ("operations on metadata that are sent at once", ASK_OPS_MAX),
                ("new partitions that a controller begins, before other topics have a part", FIRSTS_TOGETHER_MAX),
                ("decisions of a controller that are on their way to the metadata", WRITES_IN_FLIGHT_MAX),
                ("partitions that a follower asks for in one request", ASKS_TOGETHER_MAX),
                ("nodes that are deleted together; a larger topic goes in parts", DELETES_TOGETHER_MAX),
                ("files that a cleaning replaces by one", GROUP_FILES_MAX),
                ("files that one append begins; the last takes what is left", APPEND_FILES_MAX),
            ),
        ),
        "A long poll waits without reading: an append looks at the sizes in the log's index, for those alone who "
        "wait for that partition. Who is woken together and reads the same place shares one read.",
        "A thread unlinks the files of deleted logs, of what was truncated, and those below a log's start "
        f"({STEP_FILES} in a step), one after another. A truncation renames its files in the loop, which takes "
        "some 20 microseconds for each. A new file has to wait until the one before it is durable. After a crash "
        f"the first flush of a log is of all its files, {THREADS_MAX} at once.",
        *_data_directory(),
    )


def _data_directory() -> tuple[str, ...]:
    return (
        "## A strange data directory",
        "Others may write to a data directory: an operator, another tool, a damaged disk. A start looks at all of "
        "it before it changes anything, and what it refuses is as it was afterwards. It then ends with one line, "
        "which names the file, and exit code 1.",
        "- Only regular files are opened, through no link: a link, a FIFO, a socket, a device or a directory in "
        "the place of one of the broker's files is refused, as is anything but a directory in the place of a "
        "partition. The same holds for each file that is opened, made or renamed later, and a broker that meets "
        "such a name then ends. `data_dir` itself may be a link. Hard links are files like any other.\n"
        "- Names that are not the broker's are left alone, whatever has them: `lost+found`, what Apache Kafka has "
        "beside a segment, a directory whose name Kafka does not allow for a partition (the log says so).\n"
        "- Refused is what is larger than any of the broker's own:",
        markdown.table(
            ("what", "at most"),
            (
                ("names of a directory", f"{NAMES_MAX:,}"),
                ("bytes of a checkpoint", f"{checkpoint.BYTES_MAX:,}"),
                ("entries of a checkpoint of the data directory", f"{checkpoint.ENTRIES_MAX:,}"),
                ("entries of a checkpoint of leader epochs", f"{checkpoint.EPOCHS_MAX:,}"),
                (f"entries of a `{checkpoint.EPOCHS_FILE}`", f"{checkpoint.EPOCHS_MAX:,}"),
                ("bytes of a `partition.metadata`", f"{checkpoint.TOPIC_ID_BYTES_MAX:,}"),
                ("the offset in the name of a segment", f"{BASE_OFFSET_MAX:,}"),
            ),
        ),
        "- A checkpoint of a sane size with other contents than Kafka's, or with a number that Kafka cannot have "
        "(an offset of more than 64 bits, a negative epoch), is unreadable: the broker starts without it "
        "(KAFKA-16541), and says so in its log and in the history.\n"
        "- Segments are read header by header, and checksums are computed piece by piece: a sparse file or a "
        "batch of 2 GB takes time but no memory.",
    )


def _value(name: str, value: int) -> str:
    unit = next((unit for ending, unit in _UNITS if name.endswith(ending)), "")
    return f"{value:,} {unit}".strip()

"""What a tablet server prints of a cut is read; no other line is."""

from __future__ import annotations

import pytest

from harness.target.target import Printed
from targets.fluss.target import TARGET

CUT = (
    "20:28:33,223 INFO  ReplicaManager Truncating the logEndOffset for replica id 1 of table bucket "
    "TableBucket{tableId=7106407, bucket=0} to local highWatermark 4 as it becomes the follower"
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (CUT, Printed(what="truncate", topic="log", partition=0, to=4)),
        (f"{CUT} for leader epoch 3", Printed(what="truncate", topic="log", partition=0, to=4)),
        (
            CUT.replace("bucket=0", "bucket=12").replace("Watermark 4", "Watermark 123456789012"),
            Printed(what="truncate", topic="log", partition=12, to=123456789012),
        ),
        (CUT.replace("7106407", "3"), Printed(what="truncate", topic="table-3", partition=0, to=4)),
        (
            CUT.replace("7106407", "9" * 19),
            Printed(what="truncate", topic=f"table-{'9' * 19}", partition=0, to=4),
        ),
    ],
)
def test_cut_is_read(line: str, expected: Printed) -> None:
    assert expected == TARGET.printed(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        CUT.removesuffix("as it becomes the follower"),
        CUT.replace("highWatermark 4", "highWatermark -1"),
        CUT.replace("highWatermark 4", "highWatermark"),
        CUT.replace("tableId=7106407", "tableId=x"),
        CUT.replace("tableId=7106407", f"tableId={'9' * 20}"),
        CUT.replace("tableId=7106407, bucket", "tableId=7106407, partitionId=1, bucket"),
        CUT.replace("bucket=0", "bucket=-1"),
        CUT.replace("Truncating the logEndOffset", "Not truncating the logEndOffset")[:100],
        "20:28:33,223 INFO  LogTablet Truncating to offset 4",
        "20:28:33,223 INFO  TabletServer Tablet server 1 is started",
    ],
)
def test_any_other_line_says_nothing(line: str) -> None:
    assert None is TARGET.printed(line)

"""
Lines of a tablet server's log about its replicas.

    truncate   it becomes the follower of a leader, or of nobody, and cuts its log to its own high watermark;
               printed also where there is nothing to cut

Source:  log statements of ReplicaManager.java, 0.9.1.
"""

from __future__ import annotations

import re
from typing import Final

from harness.target.target import Printed
from targets.fluss.tables import topic_of

_CUT: Final = re.compile(
    r"Truncating the logEndOffset for replica id \d+ of table bucket TableBucket\{tableId=(?P<table>\d{1,19}), "
    r"bucket=(?P<bucket>\d{1,9})\} to local highWatermark (?P<to>\d{1,19}) as it becomes the follower"
)


def read(line: str) -> Printed | None:
    """Return what a line reports; None for any other line."""
    found = _CUT.search(line)
    if found is None:
        return None
    return Printed(
        what="truncate",
        topic=topic_of(int(found["table"])),
        partition=int(found["bucket"]),
        to=int(found["to"]),
    )

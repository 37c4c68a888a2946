"""
What lines of a broker's log tell of its replicas, release by release; nothing else of Apache Kafka tells it.

    truncate   a follower has learned where to cut, whether there is anything to cut or not. 0.10 says so at every
               become-follower; from 2.7 on it is silent where its fetch finds nothing to cut
    stuck      a partition's fetcher has given up: a failed append or truncation ended its thread, or (from 2.3 on)
               marked the partition failed
    fenced     the leader refused its fetch as one of an older epoch (from 2.1 on)
    exiting    KAFKA-3924: its log is longer than its leader's, and the process ends itself (to 2.0.0). 0.10.2 says
               so and hangs in its exit: the line is the sign, not the process

A line is no proof that a log was cut: whoever wants one reads the files.

Source:  log statements of kafka.log.Log and kafka.server's fetcher threads, 0.10.2 to 3.9.
"""

from __future__ import annotations

import re
from typing import Final

from harness.cluster.target import Printed

_PARTITION: Final = r"(?P<topic>[\w.-]+)-(?P<partition>\d+)"
_OLD_PARTITION: Final = r"\[(?P<topic>[\w.-]+),(?P<partition>\d+)\]"
_LOG: Final = rf"\[(?:Unified)?Log partition={_PARTITION}, dir=[^]]*\]"

# In the order in which they are tried; the first that is found in a line is what it tells.
PATTERNS: Final = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("exiting", rf"Exiting because log truncation is not allowed for partition {_PARTITION},"),
        ("truncate", rf"Truncating log {_PARTITION} to offset (?P<to>\d+)"),
        ("truncate", rf"Truncating {_PARTITION} to (?P<to>\d+) has no effect"),
        ("truncate", rf"{_LOG} Truncating to (?:offset )?(?P<to>\d+)"),
        ("fenced", rf"Partition {_PARTITION} has an older epoch \(\d+\) than the current leader"),
        ("stuck", rf"Unexpected offset in append to {_PARTITION}\."),
        ("stuck", rf"error processing data for partition {_OLD_PARTITION} offset"),
        ("stuck", rf"Error processing data for partition {_PARTITION} offset"),
        ("stuck", rf"Unexpected error occurred while processing data for partition {_PARTITION} "),
        ("stuck", rf"Unexpected error occurred during truncation for {_PARTITION} "),
    )
)


def read(line: str) -> Printed | None:
    """Say what a line tells; None for nothing that anybody waits for."""
    for what, pattern in PATTERNS:
        if found := pattern.search(line):
            groups = found.groupdict()
            cut_to = groups.get("to")
            return Printed(
                what=what,
                topic=groups["topic"],
                partition=int(groups["partition"]),
                to=None if cut_to is None else int(cut_to),
            )
    return None

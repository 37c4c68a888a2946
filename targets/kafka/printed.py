"""
Lines of a broker's log about its replicas, release by release; Apache Kafka reports this nowhere else.

    truncate   a follower has learned where to truncate, even if there is nothing to remove. 0.10 prints it at
               every become-follower; from 2.7 on it prints nothing if its fetch finds nothing to truncate
    stuck      a partition's fetcher has stopped: a failed append or truncation ended its thread, or (from 2.3 on)
               marked the partition failed
    fenced     the leader refused its fetch for an older epoch (from 2.1 on)
    format     the broker is about to take up a message format that its topic was given
    exiting    KAFKA-3924: its log is longer than its leader's, and the process exits (up to 2.0.0). 0.10.2 prints
               it and hangs in its exit: rely on the line, not on the process

Its Java prints what it reads of its clocks beside each stop of all threads, if CLOCKS_ARGUMENT asks for it; a
SIGQUIT causes such a stop, for a dump of all threads.

A line does not prove that a log was truncated: only the files do.

Source:  log statements of kafka.log.Log and kafka.server's fetcher threads, 0.10.2 to 3.9; JEP 158 (unified
         logging) and `java -Xlog:help` of OpenJDK 17 for the decorations timemillis and timenanos.
"""

from __future__ import annotations

import re
from typing import Final

from harness.target.target import Printed

_PARTITION: Final = r"(?P<topic>[\w.-]+)-(?P<partition>\d+)"
_OLD_PARTITION: Final = r"\[(?P<topic>[\w.-]+),(?P<partition>\d+)\]"
_LOG: Final = rf"\[(?:Unified)?Log partition={_PARTITION}, dir=[^]]*\]"

CLOCKS_ARGUMENT: Final = "-Xlog:safepoint=info:stdout:timemillis,timenanos"
_CLOCKS: Final = re.compile(r'^\[(?P<wall>\d+)ms\]\[(?P<monotonic>\d+)ns\] Safepoint "PrintThreads"')
_NS_PER_MS: Final = 1_000_000

# A topic's settings, as a map of Scala or of Java. It is about all of its partitions, and counts for the first.
_FORMAT: Final = re.compile(
    r"Processing override for entityPath: topics/(?P<topic>[\w.-]+) with config: "
    r".*message\.format\.version(?: -> |=)(?P<release>\d+\.\d+)"
)

# Tried in this order; the first pattern found in a line decides.
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
    """Return what a line reports; None for any other line."""
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
    if found := _FORMAT.search(line):
        number = 1 if found["release"] == "0.10" else 2
        return Printed(what="format", topic=found["topic"], partition=0, to=number)
    return None


def clocks(line: str) -> tuple[int, int] | None:
    """Return the wall clock and the monotonic clock in a line, in nanoseconds; None for any other line."""
    found = _CLOCKS.match(line)
    return None if found is None else (int(found["wall"]) * _NS_PER_MS, int(found["monotonic"]))

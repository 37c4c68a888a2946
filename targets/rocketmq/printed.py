"""
Lines of a broker's log that say that its disk failed it; it goes on as if nothing was.

A flush that failed is forgotten (DefaultMappedFile.flush). An entry of a queue's index that could not be written
is left out (ConsumeQueue.putMessagePositionInfo notes it as written before it is). What is stored to a mapped page
that cannot be read is lost without an error, or with one in another place (`InternalError`). So the harness ends
such a broker, as its operator must.

Source:  5.3.3 and 5.5.0; the JDK's Unsafe, for what a SIGBUS becomes.
"""

from __future__ import annotations

from typing import Final

from harness.target.target import Printed

# The topic that every schedule has.
_TOPIC: Final = "log"
_SAYS: Final = (
    "Error occurred when force data to disk",
    "Error occurred when append message to mappedFile",
    "java.lang.InternalError: a fault occurred in a",
    " Failed to flush",
)


def printed(line: str) -> Printed | None:
    """Return "failed" for such a line, None for any other; it is said of one queue, and true of all."""
    if any(each in line for each in _SAYS):
        return Printed(what="failed", topic=_TOPIC, partition=0)
    return None

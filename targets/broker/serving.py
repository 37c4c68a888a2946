"""
Serves until a signal or a failure, and decides how the broker ends.

Only the signal that ended the broker makes it end cleanly. One that comes while it ends after a failed write does
not: what could not be flushed would be trusted at the next start.
Source:  Kafka Replication Design V3, 4 (a disk error ends the broker); KAFKA-10471 (a marker that is not true).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from typing import Protocol

log = logging.getLogger("fencepost.broker")


class BrokerExit(Exception):
    """The broker must not continue; the text says why."""

    def __repr__(self) -> str:
        return str(self)


class Driver(Protocol):
    """What is served."""

    async def run(self) -> str:
        """Serve until stopped; return the reason."""

    def leave(self, reason: str) -> None:
        """End `run` with this reason, perhaps after a while, unless it ends for another one before."""

    def close_cleanly(self) -> None:
        """Flush everything and leave the marker of a clean shutdown."""


async def serve(driver: Driver) -> int:
    """
    Serve until SIGTERM, SIGINT or a failure; return the exit code, 0 for a clean shutdown and 1 for a failure.

    At a SIGQUIT, print the clocks and go on, as a Java prints its threads.

    Raises:
        OSError: the disk failed while the broker started, or ended cleanly.
    """
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGQUIT, print_clocks)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, driver.leave, number.name)
    reason = await driver.run()
    if reason not in (signal.SIGTERM.name, signal.SIGINT.name):
        log.error("ended: %s", reason)
        return 1
    driver.close_cleanly()
    log.info("ended cleanly on %s", reason)
    return 0


def print_clocks() -> None:
    """Print what this process reads of its two clocks, so that a wrong one can be seen from outside."""
    log.info("clocks: wall_ns=%d monotonic_ns=%d", time.time_ns(), time.monotonic_ns())

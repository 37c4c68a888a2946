"""A broker whose disk failed ends as one that failed, whatever signal comes while it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from targets.broker.serving import serve

FAILED = "OSError(28, 'No space left on device')"


class Failing:
    """A driver that ends after a failed write, and is told to stop while it ends."""

    def __init__(self, ended: str, while_leaving: str = "") -> None:
        self.closed_cleanly = False
        self._ended = ended
        self._while_leaving = while_leaving

    def leave(self, reason: str) -> None:
        self._ended = self._ended or self._while_leaving or reason

    async def run(self) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        while not self._ended:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)  # ZooKeeper's session is being closed
        return self._ended

    def close_cleanly(self) -> None:
        self.closed_cleanly = True


@pytest.mark.parametrize(("ended", "code", "clean"), [(FAILED, 1, False), ("", 0, True)])
def test_signal_after_a_failed_write_does_not_end_the_broker_cleanly(ended: str, code: int, clean: bool) -> None:
    driver: Any = Failing(ended)
    assert code == asyncio.run(serve(driver))
    assert clean is driver.closed_cleanly


def test_write_that_fails_while_others_are_to_lead_does_not_end_the_broker_cleanly() -> None:
    driver: Any = Failing("", while_leaving=FAILED)
    assert 1 == asyncio.run(serve(driver))
    assert not driver.closed_cleanly

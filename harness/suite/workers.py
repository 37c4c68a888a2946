"""Threads that play runs in parallel; an interrupt cancels their runs and ends them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from harness import limits
from harness.model import FencepostError
from harness.run.player import Player
from harness.suite.interrupts import INTERRUPTS

LOOK_S: float = 0.1
# A cancelled run ends after its current operation; a client's operation takes longest.
END_S_MAX: float = limits.CLIENT_OPERATION_S_MAX + limits.PROCESS_END_S_MAX


def play_side_by_side(
    play_next: Callable[[], bool],
    players: Sequence[Player],
    *,
    jobs: int,
    name: str,
    look: Callable[[float], bool],
) -> None:
    """
    Play runs in `jobs` threads until there are none left.

    Args:
        play_next: plays one run; returns False if there was none left.
        players: the players, whose clusters are taken down on an error.
        jobs: the number of threads.
        name: the prefix of the threads' names.
        look: called in this thread meanwhile, with the seconds that it may wait; returns False if there was
            nothing to do.

    Raises:
        BaseException: the first exception of play_next or look, or KeyboardInterrupt, after every cluster of the
            players is down.
    """
    failed: list[BaseException] = []

    def work() -> None:
        try:
            while not failed and play_next():
                pass
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, name=f"{name}-{n}", daemon=True) for n in range(jobs)]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and not failed:
            look(LOOK_S)
        while look(0.0):
            pass
    except BaseException as error:
        failed.append(error)
    if failed:
        with INTERRUPTS.shielded():
            _end(players, threads)
        raise failed[0]


def _end(players: Sequence[Player], threads: Sequence[threading.Thread]) -> None:
    """Take every cluster down and wait for the threads; raise FencepostError if one does not end."""
    for player in players:
        player.cancel()
    deadline = time.monotonic() + END_S_MAX
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
    late = [thread.name for thread in threads if thread.is_alive()]
    if late:
        raise FencepostError(
            f"{', '.join(late)}: still at work {END_S_MAX:.0f} s after the end was asked for; expected an end; "
            "the next run takes down what they leave"
        )

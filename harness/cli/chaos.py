"""
`fencepost run --time S`: seeds drawn and played one after another on real processes, until the time is up.

What shows nothing leaves nothing behind; a finding keeps all that somebody who never saw the run needs to follow
it: what was found, the release and its properties, schedule, history, the brokers' logs and their log directories.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Final

from rich.console import Console

from harness.cli.findings import KEPT_MAX, keep_finding
from harness.cli.rounds import Ended, Missed, Round, Side, open_sides, play_rounds
from harness.cli.searching import Order, Tally
from harness.cli.tallies import print_tally, say
from harness.model import EXIT_OF_VERDICT
from harness.store import create_suite

SIDE: Final = "target"


def play_many(
    order: Order, arguments: argparse.Namespace, first: int, command: Callable[[int], str], console: Console
) -> int:
    """
    Play seeds from the first on, until all that were asked for are played or the time is up; see EXIT_CODES.

    Shapes:  command gives what plays one seed again.
    Raises:  KeyboardInterrupt, after what was played so far was told.
    """
    began, tally = time.monotonic(), Tally()
    folder = create_suite(arguments.results, f"{datetime.now(UTC):%Y%m%dT%H%M%S}-chaos-{first}")
    enough = _enough(arguments, tally, began)

    def take(ended: Ended | Missed) -> None:
        if isinstance(ended, Missed):
            say(console, ended.sentence)
            return
        tally.take(ended.trial)
        say(console, f"{time.monotonic() - began:6.1f} s  {_line(ended)}")
        if not ended.trial.found or len(tally.found) > KEPT_MAX:
            shutil.rmtree(ended.run.path)
            return
        told = keep_finding(ended, host=arguments.host, command=command(ended.round.seed))
        for line in (*ended.trial.sentences, f"finding: {told}", f"again: {command(ended.round.seed)}"):
            say(console, f"  {line}")

    opened = open_sides(
        {SIDE: order.spec()},
        host=arguments.host,
        ports=arguments.ports,
        power_tier=arguments.power_tier,
        folder=folder.path / "zookeeper",
    )
    try:
        with opened as sides:
            stages = [side.stage for side in sides]
            play_rounds(_rounds(sides[0], first, enough), stages, folder, arguments.jobs or 1, take)
    finally:
        if tally.seeds:
            print_tally(tally, console, wall_s=time.monotonic() - began)
    return EXIT_OF_VERDICT[tally.verdict]


def _enough(arguments: argparse.Namespace, tally: Tally, began: float) -> Callable[[int], bool]:
    """Whether no more seeds are begun, after so many; one is begun in any case."""

    def enough(begun: int) -> bool:
        if arguments.stop_at_first and tally.found:
            return True
        if arguments.time is None:
            return begun >= int(arguments.seeds)
        return begun > 0 and time.monotonic() - began >= float(arguments.time)

    return enough


def _rounds(side: Side, first: int, enough: Callable[[int], bool]) -> Iterator[Round]:
    for begun in count():
        if enough(begun):
            return
        yield Round(side=side, seed=first + begun)


def _line(ended: Ended) -> str:
    trial = ended.trial
    bit, asked = sum(trial.bit.values()), sum(trial.asked.values())
    why = f"; {trial.vacuous}" if trial.vacuous else ""
    return (
        f"{ended.round.name}: {trial.verdict.name.lower()} in {trial.seconds:.1f} s, {bit} of {asked} faults bit, "
        f"{trial.elections} elections, {trial.acked} acknowledged by all{why}"
    )

"""Where nights are, and which one a command means: the one that was not ended, or a new one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from harness.model import UsageError
from harness.night.journal import LINES, RESERVE, read_lines, require
from harness.night.known import Known
from harness.night.plan import Plan, parse_plan
from harness.night.schedule import Unit, schedule_of
from harness.night.state import State
from harness.run.store import unique_folder

NIGHTS: Final = "nights"
KNOWN: Final = "known"
SEED_MAX: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    How a night is played, from the command line.

    Attributes:
        plan: what is played, on its hosts and with its targets of this night.
        hosts, targets: what was asked for in place of the plan's; () for the plan's own.
        seconds: how long it lasts.
        seed: the first seed, None for a random one.
        fresh: whether a new night begins though one was not ended.
        strict: whether a line that is left out makes the night unknown.
    """

    plan: Plan
    results: Path
    seconds: float
    hosts: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    seed: int | None = None
    jobs: int | None = None
    ports: range | None = None
    power_tier: str | None = None
    fresh: bool = False
    strict: bool = False

    @property
    def nights(self) -> Path:
        """The folder of all nights."""
        return self.results / NIGHTS

    @property
    def asked(self) -> dict[str, Any]:
        """What must be the same for a night to go on: all that decides what it plays, but its seed."""
        return {
            "plan": self.plan.text,
            "seconds": self.seconds,
            "hosts": list(self.hosts),
            "targets": list(self.targets),
            "power_tier": self.power_tier or "",
        }


def units_of(about: Mapping[str, Any], known: Path) -> tuple[Unit, ...]:
    """Return the units of a night from the first line of its journal."""
    plan = parse_plan(about["plan"], "the night's plan")
    if about["targets"]:
        plan = plan.of(about["targets"])
    if about["hosts"]:
        plan = plan.on(about["hosts"])
    return schedule_of(
        plan,
        [Known.from_dict(each) for each in about["known"]],
        seed=about["seed"],
        seconds=about["seconds"],
        folder=known,
        power_tier=about["power_tier"] or None,
    )


def unended_in(nights: Path) -> Path | None:
    """Return the folder of the newest night, if it was not ended."""
    folders = sorted(path for path in nights.iterdir() if not path.is_symlink() and (path / LINES).exists())
    for folder in reversed(folders):
        lines, _ = read_lines(folder / LINES)
        if not lines:  # it was killed before it had begun
            if others := sorted({path.name for path in folder.iterdir()} - {LINES, RESERVE}):
                raise UsageError(
                    f"{folder / LINES}: no whole line, beside {', '.join(others[:3])}; expected a journal; "
                    "move the night's folder away"
                )
            shutil.rmtree(folder)
            continue
        require(lines[0], folder / LINES)
        return None if State.of(lines, str(folder / LINES)).finished else folder
    return None


def new_folder(nights: Path, seed: int) -> Path:
    """Make the folder of a new night, whose name begins with the time; raise UsageError if it cannot be."""
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{seed}"
    try:
        return unique_folder(nights, name)
    except OSError as error:
        raise UsageError(
            f"{nights / name}: {error.strerror}; expected a folder that can be written; name another (--results)"
        ) from error

"""What `fencepost fetch nats` builds; `fencepost test nats` plays the newest release, with both settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from targets.nats.versions import ALWAYS, NEWEST, VERSIONS, release_of

# What a few minutes have room for, of both settings; `--scenario all` plays the others too.
USUAL: Final = (
    "*-diverges",
    "*-leads",
    "*-stuck",
    "*-dies",
    "all-lose-power*",
    "majority-loses-power",
    "rolling-power-losses",
    "three-leaders-in-a-row",
)
COMMANDS: Final[dict[str, object]] = {}
USUAL_VERSIONS: Final = (NEWEST, f"{NEWEST}-{ALWAYS}")


def bring(versions: Sequence[str], say: Callable[[str], None]) -> None:
    """Build the releases of these versions, of all for (), where they are not there."""
    from targets.nats import building

    wanted = {release.name: release for release in map(release_of, versions or VERSIONS)}
    building.bring(list(wanted.values()), say)

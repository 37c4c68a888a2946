"""What `fencepost fetch rocketmq` brings; `fencepost test rocketmq` plays the newest release at its safest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from targets.rocketmq.versions import ASYNC, NEWEST, VERSIONS, release_of

COMMANDS: Final[dict[str, object]] = {}
USUAL_VERSIONS: Final = (NEWEST, f"{NEWEST}-{ASYNC}")


def bring(versions: Sequence[str], say: Callable[[str], None]) -> None:
    """Bring the releases of these versions, all for (), where they are not there."""
    from targets.rocketmq import building

    wanted = {release.name: release for release in map(release_of, versions or VERSIONS)}
    building.bring(list(wanted.values()), say)

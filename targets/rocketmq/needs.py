"""What the target needs of a machine: the jars of each release, and two classes that a JDK compiles once."""

from __future__ import annotations

from functools import cache, partial
from typing import Final

from harness.target.needs import Row
from targets.rocketmq.building import why_not
from targets.rocketmq.versions import NAME, NEWEST, RELEASES


@cache
def _lacks(name: str) -> str:
    return why_not(RELEASES[name])


ROWS: Final = {
    f"{NAME}-{name}": Row(
        why_not=partial(_lacks, name),
        install=f"fencepost fetch {NAME}:{name}, with a JDK 17 or later",
        serves=f"{NAME}:{name} as a target"
        + (f", and producers on {NAME} that send again" if name == NEWEST else ""),
    )
    for name in RELEASES
}

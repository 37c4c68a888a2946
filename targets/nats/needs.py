"""What the target needs of a machine: the program of each release, and nats-py for producers that send again."""

from __future__ import annotations

from functools import partial
from typing import Final

from harness.extras import lacks
from harness.target.needs import Row
from targets.nats.building import why_not
from targets.nats.versions import NAME, RELEASES, Release, library


def _lacks(release: Release) -> str:
    return why_not(release, library()).partition(";")[0]


ROWS: Final = {
    f"{NAME}-{release.name}": Row(
        why_not=partial(_lacks, release),
        install=f"fencepost fetch {NAME}:{release.name}, with Go 1.26 or later",
        serves=f"{NAME}:{release.name} as a target",
    )
    for release in RELEASES.values()
} | {
    "nats-py": Row(
        why_not=lambda: lacks("nats"),
        install="pip install 'fencepost[nats]'",
        serves="producers on nats that send again",
    )
}

"""What the releases of Apache Fluss need of a machine: the jars of each."""

from __future__ import annotations

from functools import cache, partial
from typing import Final

from harness.extras import lacks
from harness.target.needs import Row
from targets.fluss.versions import RELEASES, library, release_of


@cache
def _jars(release: str) -> str:
    folder = library()
    lacking = [each for each in release_of(release).files if not (folder / each.path).is_file()]
    return f"{len(lacking)} jars are not in {folder}" if lacking else ""


ROWS: Final = {
    f"fluss-{name}": Row(
        why_not=partial(_jars, name),
        install=f"fencepost fetch fluss:{name}",
        serves=f"fluss:{name} as a target",
    )
    for name in RELEASES
} | {
    "pyfluss": Row(
        why_not=lambda: lacks("fluss"),
        install="pip install 'fencepost[fluss]'",
        serves="producers on fluss that send again",
    )
}

"""What the releases of Apache Kafka need of a machine: the jars of each."""

from __future__ import annotations

from functools import cache, partial
from typing import Final

from harness.target.needs import Row
from targets.kafka.jars import cache_dir, jars_of, missing, tools_of
from targets.kafka.releases import release_of, releases


@cache
def _jars(release: str) -> str:
    of = release_of(release)
    lacking = missing((*jars_of(of), *tools_of(of)), cache_dir())
    return f"{len(lacking)} jars are not in {cache_dir()}" if lacking else ""


ROWS: Final = {
    f"kafka-{name}": Row(
        why_not=partial(_jars, name),
        install=f"fencepost kafka fetch {name}",
        serves=f"kafka:{name} as a target",
    )
    for name in releases()
}

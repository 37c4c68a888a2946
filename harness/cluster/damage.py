"""
Flip a byte of a node's files, and see that whoever reads them finds it.

Source:  docs/nemeses.md; harness/bit_rot.py, for which byte.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.bit_rot import Where
from harness.cluster.cluster import Cluster


def flip(cluster: Cluster, name: str, where: Where) -> str:
    """
    Flip a byte of the named partition's files on a node; return what was seen, which begins with the flip's text.

    Raises:
        PreconditionError: there is no such byte.
    """
    partition = cluster.named
    flipped = cluster.host.flip(name, partition.place.topic, partition.place.partition, where)
    after = partition.log(name)
    problems = () if after is None else after.problems
    seen = next((text for text in problems if text.startswith(flipped.file)), "")
    return f"{flipped}; {seen or 'the log was cut there at once'}"


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note what a reader of the partition's files finds wrong; return what tells that it finds nothing else."""
    partition = cluster.named
    before = partition.log(name)

    def unchanged() -> str:
        after = partition.log(name)
        problems, end = (before.problems, before.log_end_offset) if before is not None else ((), -1)
        # A broker that has seen it by now may have cut its log there.
        if after is not None and (after.problems not in ((), problems) or after.log_end_offset < end):
            return ""
        return (
            f"{name}'s files are read as if nothing had changed; expected a checksum that differs, "
            "or a checkpoint that cannot be read"
        )

    return unchanged

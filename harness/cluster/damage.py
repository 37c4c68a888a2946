"""
Flip a byte of a node's files, and see that whoever reads them finds it.

Source:  docs/nemeses.md; harness/bit_rot.py, for which byte.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.bit_rot import Where
from harness.cluster.cluster import Cluster
from harness.model import PreconditionError


def flip(cluster: Cluster, name: str, where: Where) -> str:
    """
    Flip a byte of the named partition's files on a node; return what was seen, which begins with the flip's text.

    Raises:
        PreconditionError: there is no such byte; or the files are read as if nothing had changed.
    """
    partition = cluster.named
    end = partition.log_end(name)
    flipped = cluster.host.flip(name, partition.place.topic, partition.place.partition, where)
    if where.is_state:
        seen = cluster.host.read_again(name, flipped)
        if not seen:
            raise PreconditionError(f"{flipped}: {_unchanged(name)}")
        return _noted(cluster, name, f"{flipped}; {seen}")
    after = partition.log(name)
    problems = () if after is None else after.problems
    # A reader names the file alone, or its path where files of several folders have one name.
    seen = next((text for text in problems if text.startswith((flipped.file, flipped.path))), "")
    # A broker that has seen it by now may have cut its log there.
    if not seen and (after is None or after.log_end_offset >= end):
        raise PreconditionError(f"{flipped}: {_unchanged(name)}")
    return _noted(cluster, name, f"{flipped}; {seen or 'the log was cut there at once'}")


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """
    Note how many flipped bytes were found; return what tells that no other was.

    The files do not tell it later: a broker that has seen the damage may have copied the batch again by now.
    """
    before = cluster.rotten.get(name, 0)
    return lambda: _unchanged(name) if cluster.rotten.get(name, 0) == before else ""


def _noted(cluster: Cluster, name: str, seen: str) -> str:
    """Count one more flipped byte of a node."""
    cluster.rotten[name] = cluster.rotten.get(name, 0) + 1
    return seen


def _unchanged(name: str) -> str:
    return (
        f"{name}'s files are read as if nothing had changed; expected a checksum that differs, "
        "a checkpoint that cannot be read, or a file of a state that says something else"
    )

"""
Flip a bit of a file of a stream that keeps no record, while its server runs or while it is down.

A server reads these files at its start alone. They differ in which file it is, and in what shows the flip: the
last three have a checksum; a term is a lower one afterwards, and a member is one that is none.
Source:  targets/nats/logs/state.py; docs/bit-rot.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from harness.bit_rot import Where
from harness.cluster.cluster import Cluster
from harness.cluster.damage import flip
from harness.cluster.fault import Fault
from nemesis import bit_rot_active


def _fault(where: Where, doc: str) -> Fault:
    def inject(cluster: Cluster, name: str) -> str:
        """Flip the bit; the probe is a reader of the file, which finds it changed."""
        return flip(cluster, name, where)

    return replace(
        bit_rot_active.FAULT,
        name=f"bit-rot-{where.value}",
        doc=f"flip a bit of {doc}; the node goes on",
        inject=inject,
    )


TERM: Final = _fault(Where.TERM, "the term that the stream's Raft group keeps, which is a lower one then")
MEMBERS: Final = _fault(Where.MEMBERS, "a name in the list of members of the stream's Raft group")
SNAPSHOT: Final = _fault(Where.SNAPSHOT, "the newest snapshot of the stream's Raft group")
INDEX: Final = _fault(Where.INDEX, "the index of the stream's store")
META: Final = _fault(Where.META, "the stream's configuration")

"""
What a machine must be able to do for a fault: each host probes it at the start, and says why where it cannot.

A fault names what it needs (harness/cluster/fault.py). No code outside of a host asks which host it is.
"""

from __future__ import annotations

from enum import StrEnum


class Ability(StrEnum):
    """
    Something that not every host can do to its nodes.

    WALL_CLOCK: set the wall clock of one node apart from all others. CLOCKS: have the wall clock and the monotonic
    clock of one node run otherwise than all others. DISK_ERRORS: have a node's disk report an error that its
    broker meets. LOST_DISKS: replace a node's disk by an empty one.
    """

    WALL_CLOCK = "wall-clock"
    CLOCKS = "clocks"
    DISK_ERRORS = "disk-errors"
    LOST_DISKS = "lost-disks"

"""
What a machine must be able to do for a fault: each host probes it at the start, and says why where it cannot.

A fault names what it needs (harness/cluster/fault.py). No code outside of a host asks which host it is.
"""

from __future__ import annotations

from enum import StrEnum


class Ability(StrEnum):
    """
    Something that not every host can do to its nodes.

    CLOCKS: set the clock of one node apart from all others. DISK_ERRORS: have a node's disk report an error that
    its broker meets. LOST_DISKS: replace a node's disk by an empty one. OWN_ZOOKEEPER: start a ZooKeeper server
    for one run alone. ENSEMBLE: start three, of which one leads. CLIENT_PROCESSES: let a workload's clients be
    processes of their own. CLIENT_LINKS: let clients reach brokers through links that can be cut.
    """

    CLOCKS = "clocks"
    DISK_ERRORS = "disk-errors"
    LOST_DISKS = "lost-disks"
    OWN_ZOOKEEPER = "own-zookeeper"
    ENSEMBLE = "zookeeper-ensemble"
    CLIENT_PROCESSES = "client-processes"
    CLIENT_LINKS = "client-links"

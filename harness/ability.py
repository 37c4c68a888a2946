"""
What a machine, or the system under test, must be able to do for a fault or a step.

A fault names what it needs (harness/cluster/fault.py). Each host probes its machines at the start, and says why
where they cannot; a target says what it can be asked for. No code outside of a host asks which host it is.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Ability(StrEnum):
    """
    Something that not every host can do to its nodes, or that not every system can be asked for.

    WALL_CLOCK: set the wall clock of one node apart from all others. CLOCKS: have the wall clock and the monotonic
    clock of one node run otherwise than all others. DISK_FULL: let a node's disk run out of space. DISK_ERRORS:
    have its writes and flushes fail with EIO. DISK_READ_ERRORS: have its reads fail with EIO. DISK_READ_ONLY: have
    every change of it fail with EROFS. DISK_SLOW: have its calls take longer. LOST_DISKS: replace a node's disk by
    an empty one. TORN_POWER_LOSS: lose a part of what was not flushed. BIT_ROT: change a byte of its files.
    SEGMENTS: delete the newest piece of a log.
    OWN_SERVICES: start services for one run alone. SERVICE_ENSEMBLE: start several processes of one, of which one
    leads. SERVICE_POWER_LOSS: take the power of a service's disk, and nothing that the service has flushed.
    CLIENT_PROCESSES: let a workload's clients be processes of their own. CLIENT_LINKS: let clients reach brokers
    through links that can be cut. METADATA_LINKS: let nodes reach the metadata so. PACKETS_DROPPED: have the
    kernel drop the packets of a node's listeners. PACKETS_THROTTLED: have it pass what is sent to a node at a low
    rate. PACKETS_LOSSY: have it delay that and lose some of it.

    Of the system: ELECT: have a node that is in sync lead. MOVE: move a partition to other nodes. REMOVE: take
    partitions out of a topic. EXPIRE: end a node's membership. DEPOSE: take its office from the controller.
    CONTROLLER: name a controller. MEMBERS: say which nodes are members.
    """

    WALL_CLOCK = "wall-clock"
    CLOCKS = "clocks"
    DISK_FULL = "disk-full"
    DISK_ERRORS = "disk-errors"
    DISK_READ_ERRORS = "disk-read-errors"
    DISK_READ_ONLY = "disk-read-only"
    DISK_SLOW = "disk-slow"
    LOST_DISKS = "lost-disks"
    TORN_POWER_LOSS = "torn-power-loss"
    BIT_ROT = "bit-rot"
    SEGMENTS = "log-segments"
    OWN_SERVICES = "own-services"
    SERVICE_ENSEMBLE = "service-ensemble"
    SERVICE_POWER_LOSS = "service-power-loss"
    CLIENT_PROCESSES = "client-processes"
    CLIENT_LINKS = "client-links"
    METADATA_LINKS = "metadata-links"
    PACKETS_DROPPED = "packets-dropped"
    PACKETS_THROTTLED = "packets-throttled"
    PACKETS_LOSSY = "packets-lossy"
    ELECT = "elect"
    MOVE = "move"
    REMOVE = "remove"
    EXPIRE = "expire"
    DEPOSE = "depose"
    CONTROLLER = "controller"
    MEMBERS = "members"


# What the kernel must do to a node's packets (harness/packets.py).
OF_PACKETS: Final = frozenset({Ability.PACKETS_DROPPED, Ability.PACKETS_THROTTLED, Ability.PACKETS_LOSSY})
# Those that a node's disk must have from the start: its calls pass through the harness (harness/hosts/faulty.py).
OF_DISKS: Final = frozenset(
    {
        Ability.DISK_FULL,
        Ability.DISK_ERRORS,
        Ability.DISK_READ_ERRORS,
        Ability.DISK_READ_ONLY,
        Ability.DISK_SLOW,
    }
)
# What is asked of the system, or shown by it, and not done by a machine (harness/target/operator.py, metadata.py).
OF_TARGETS: Final = frozenset(
    {
        Ability.ELECT,
        Ability.MOVE,
        Ability.REMOVE,
        Ability.EXPIRE,
        Ability.DEPOSE,
        Ability.CONTROLLER,
        Ability.MEMBERS,
    }
)

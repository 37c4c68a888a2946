"""What the kernel can do to the packets of one node, below everything that the fabric sees."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from harness.ability import Ability


class Packets(StrEnum):
    """
    What becomes of a node's packets.

    DROPPED: those from and to its listeners are dropped, without a word to either side; what it sends by its own
    connections passes. THROTTLED: all that is sent to it passes at a low rate, and waits for that. LOSSY: all that
    is sent to it is late by as much as chance says, and some of it is lost, so that TCP sends it again.
    """

    DROPPED = "dropped"
    THROTTLED = "made to wait"
    LOSSY = "late or lost"


NEEDS: Final[Mapping[Packets, Ability]] = {
    Packets.DROPPED: Ability.PACKETS_DROPPED,
    Packets.THROTTLED: Ability.PACKETS_THROTTLED,
    Packets.LOSSY: Ability.PACKETS_LOSSY,
}

# What is sent to a throttled node arrives at this rate; a follower at work fetches some hundred bytes a request.
KBIT_PER_S: Final = 64
# To a lossy one a packet is late by this, plus or minus as much, and so many of a hundred are lost.
LATE_MS: Final = 50
LOST_PERCENT: Final = 10

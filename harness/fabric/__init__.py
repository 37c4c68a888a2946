"""Programmable links between nodes; `Fabric` is the way in."""

from __future__ import annotations

from harness.fabric.fabric import Fabric
from harness.fabric.rules import Cut, Delay, Direction, HeldFrame, Hold

__all__ = ["Cut", "Delay", "Direction", "Fabric", "HeldFrame", "Hold"]

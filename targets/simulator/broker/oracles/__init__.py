"""Invariants of every step of a world, not only of its end; `watch` has the list of rules."""

from targets.simulator.broker.oracles.violation import Rule, Violation
from targets.simulator.broker.oracles.watch import Oracles

__all__ = ["Oracles", "Rule", "Violation"]

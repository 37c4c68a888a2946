"""What the fabric saw of followers must fit what they and their leaders reported."""

from checkers.rules.sights.rule import KINDS, sights

__all__ = ["KINDS", "sights"]

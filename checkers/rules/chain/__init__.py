"""What a broker reports must follow from what it reported before: its log, its role, its epochs, its files."""

from checkers.rules.chain.rule import KINDS, chain

__all__ = ["KINDS", "chain"]

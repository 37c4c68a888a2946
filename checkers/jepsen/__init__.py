"""Jepsen's checker for Kafka, over histories of Jepsen's own form: which verdict it gives, and why."""

from __future__ import annotations

from checkers.jepsen.reading import read
from checkers.jepsen.verdict import COLUMNS, Column, Verdict, judge

__all__ = ["COLUMNS", "Column", "Verdict", "judge", "read"]

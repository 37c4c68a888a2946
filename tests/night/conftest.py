"""Fixtures of nights."""

from __future__ import annotations

from tests.night.nights import fakes

__all__ = ["fakes"]

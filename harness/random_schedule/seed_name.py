"""The name under which a seed's schedule is drawn, whatever file it is in later."""

from __future__ import annotations


def seed_name(seed: int) -> str:
    """Return the name of a seed's random schedule; its broker ids are drawn from it."""
    return f"seed-{seed}"

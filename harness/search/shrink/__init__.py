"""Shrinking: reduce a schedule to a minimal one that shows the same kind of violation in the simulator."""

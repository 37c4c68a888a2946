"""Measurements, run by hand: no test and no verdict depends on a wall clock."""

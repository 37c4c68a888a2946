"""Whoever else acts on our broker's cluster in a random world: administrators, and faults of no schedule."""

"""A node's disk as our broker uses it: logs of batches, checkpoints, rot, and what a power loss leaves."""

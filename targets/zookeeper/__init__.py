"""ZooKeeper for any target that stands on it: its server, sessions, packets, and the faults that hit it."""

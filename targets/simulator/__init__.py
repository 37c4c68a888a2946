"""Simulated systems, in virtual time and from one seed: what is general, ZooKeeper, the world of our broker."""

"""Frames, bodies and packets of Kafka and ZooKeeper, read on the links between nodes."""

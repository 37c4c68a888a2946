"""Kafka's wire and ZooKeeper's packets as the harness reads and writes them; no broker's process has any of it."""

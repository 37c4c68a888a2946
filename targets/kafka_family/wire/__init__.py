"""Kafka's wire, as the harness itself reads and writes it; nothing here is shared with a broker's process."""

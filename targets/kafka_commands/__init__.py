"""The commands that Apache Kafka alone has; targets/kafka/commands.py registers them."""

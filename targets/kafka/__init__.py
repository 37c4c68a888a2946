"""Apache Kafka as a system under test, release by release; nothing in its brokers is changed."""

"""Apache Kafka as a system under test, release by release; its brokers run unchanged."""

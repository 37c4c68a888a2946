"""ZooKeeper as a service of Kafka's family: its servers on a host, and what an operator asks them."""

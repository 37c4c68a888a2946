"""ZooKeeper as the systems of Kafka's family use it: sessions, and what is read and asked there."""

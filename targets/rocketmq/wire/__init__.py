"""The wire of RocketMQ: remoting, and the replication between brokers."""

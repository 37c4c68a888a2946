"""NATS JetStream: a stream is a log that a Raft group of its own replicates."""

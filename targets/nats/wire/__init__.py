"""The wire of NATS: frames, and the fields of messages that rules of links and histories need."""

"""The clients of NATS: one by hand that sends once, and nats-py, which its users have."""

"""Apache RocketMQ in controller mode as a system under test."""

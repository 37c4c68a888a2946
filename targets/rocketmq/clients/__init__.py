"""Clients of RocketMQ: the remoting protocol, spoken plainly."""

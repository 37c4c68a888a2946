"""Logs of RocketMQ: the commit log of a broker, and its file of epochs."""

"""The world of our broker: nodes that run its core, clients, operators and oracles."""

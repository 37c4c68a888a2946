"""A simulated ZooKeeper: its tree, sessions, servers and a client; it knows the engine alone."""

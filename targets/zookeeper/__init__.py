"""A real ZooKeeper server: how it is started, and how a session is ended from outside."""

"""
What the systems of Kafka's family share on the harness's side: the wire, log files, ZooKeeper, clients.

The target `kafka` and the harness's side of our broker use it. A broker's own process never does: what produces
evidence shares no code with what is judged.
"""

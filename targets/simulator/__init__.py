"""The broker's own core on a simulated network, disk and ZooKeeper, in virtual time and from one seed."""

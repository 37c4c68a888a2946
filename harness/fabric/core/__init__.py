"""Links without IO, clock or threads: what rules do to frames, for the proxy and the simulator."""

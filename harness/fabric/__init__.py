"""Programmable links between nodes: a proxy, and the core that it shares with the simulator."""

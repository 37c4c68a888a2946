"""This repository's broker as a target: the side of the harness; its own process is targets/broker."""

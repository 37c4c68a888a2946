"""The parts of the host `ssh`: what runs here, and what is copied to a machine and runs there."""

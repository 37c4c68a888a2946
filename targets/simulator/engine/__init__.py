"""What any simulated system uses: virtual time, the network, machines and what is recorded; it knows no system."""

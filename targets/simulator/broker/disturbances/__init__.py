"""What disturbs our broker's cluster in a random world beside its schedule: requests, and sessions that end."""

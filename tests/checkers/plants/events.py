"""Plants about events."""

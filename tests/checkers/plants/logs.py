"""Plants about logs."""

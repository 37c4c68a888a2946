"""Plants about whole."""

"""The clients of Fluss."""

"""What a system's metadata show, as events of the history, and metadata that are polled or followed."""

"""The clients of a workload, whatever they stand on: threads, or processes that are killed, and their ops."""

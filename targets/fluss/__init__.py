"""Apache Fluss as a target: tables whose buckets are replicated logs."""

"""What a workload's clients do, as plain data and pure decisions, which every environment executes alike."""

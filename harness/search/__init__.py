"""Random runs, one for each seed: searched in the simulator, played on real processes, or on two targets."""

"""One run: what decides it (spec), how it is played (environment, player), what came of it (result, store)."""

"""One run: its specification (spec), how it is played (environment, player), its result (result, store)."""

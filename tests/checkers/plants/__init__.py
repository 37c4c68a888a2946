"""Golden histories: real runs, each with one thing planted that a checker must find, or with its lawful twin."""

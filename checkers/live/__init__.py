"""The live check: a few of the rules beside a run, op by op; see checkers/live/watch.py."""

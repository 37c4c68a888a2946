"""
The process from which Spark forks the Pythons of a local master's executors: `python -m checkers.spark.daemon`.

It has imported what they need, so that none of them does: half a second for each of some six. What is imported is
kept out of garbage collection, which PySpark asks for after each task. PySpark documents the setting
spark.python.daemon.module, and such a module (its page Debugging PySpark).
"""

from __future__ import annotations

import gc
import os
import sys

import pyspark.worker
from pyspark import daemon

import checkers.spark.executor

# Imported for those that are forked.
IMPORTED = (pyspark.worker, checkers.spark.executor)

if __name__ == "__main__":
    gc.freeze()
    # An error of a task reaches the driver as its answer; what else is printed is that Java no longer listens.
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the process)
    daemon.manager()

"""
The gauntlet: bugs of one to three lines in the broker's core, written before the search that has to find them.

A mutant here is no rule of docs/rules.md put back; it is a bug that a release had, or that is written in haste.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.mutants import (
    asking,
    commanding,
    compacting,
    configuring,
    controlling,
    deleting,
    following,
    joining,
    leading,
    marking,
    mending,
    moving,
    numbering,
    removing,
    serving,
    stepping,
)
from benchmarks.mutants.mutant import Mutant

PARTS: Final = (
    *(stepping, controlling, commanding, leading, serving, following),
    *(joining, deleting, marking, moving, numbering, asking, compacting, configuring, removing),
    mending,
)
MUTANTS: Final[Mapping[str, Mutant]] = {mutant.name: mutant for part in PARTS for mutant in part.MUTANTS}

# Modules of the core without mutants, and why.
WITHOUT: Final[Mapping[str, str]] = {
    "admission": "no schedule gives a broker another's address, and no client speaks as one: test_admission.py",
    "damage": "no schedule flips a byte: docs/bit-rot.md",
    "configs": "told on request, and no replication: tests/broker/core/test_configs.py",
    "controller_state": "only data: what the controller knows",
    "decided": "only data: decisions and what they were made from",
    "elections": "who may lead is decided by election.py, whose mutants hold here too: test_elections.py",
    "events": "only data: inputs and outputs",
    "inter_broker": "a table of what goes with what is spoken: test_versions.py, and the scenarios upgrade-*",
    "leaving": "no schedule asks a broker to leave: test_leaving.py, and the scenario controlled-shutdown",
    "log_dirs": "told on request, and no replication: tests/broker/core/test_log_dirs.py",
    "log_port": "a port, whose two implementations are outside the core, and how both write a number",
    "messages": "only data: requests and responses",
    "moves": "what clients ask for, and no replication: test_reassignment.py",
    "names": "one rule for the names of topics, and no replication",
    "neighbours": "no schedule gives a broker another's address: tests/broker/core/test_neighbours.py",
    "placement": "where clients have partitions put, and no replication: tests/broker/core/test_admin.py",
    "producer_block": "only data: a block of ids and who waits for another",
    "readable": "no schedule writes what cannot be read into ZooKeeper",
    "rules": "only data: each of its values is a mutant of docs/rules.md already",
    "settings": "a table, and how its values are written: test_altering.py",
    "waiting": "only data: requests that wait",
}

"""
The table of environments, which open the clusters of runs; one line for each.

The values are names of modules with a `make_environment` (harness.run.environment.MakeEnvironment). A module is
imported only when its environment is used.
"""

from __future__ import annotations

from typing import Final

from harness.hosts import HOSTS

ENVIRONMENTS: Final[dict[str, str]] = {
    **dict.fromkeys(HOSTS, "harness.environment.real"),
    "sim": "targets.simulator.environment",
}

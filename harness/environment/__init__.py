"""
Environments: what opens the clusters of runs, one line each.

The values name modules, each with a `make_environment` (harness.run.environment.MakeEnvironment), which are
imported when they are asked for.
"""

from __future__ import annotations

from typing import Final

from harness.hosts import HOSTS

ENVIRONMENTS: Final[dict[str, str]] = {
    **dict.fromkeys(HOSTS, "harness.environment.real"),
    "sim": "targets.simulator.environment",
}

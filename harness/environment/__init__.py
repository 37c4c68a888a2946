"""
The table of environments, which open the clusters of runs: the hosts, and those that targets bring.

The values are names of modules with a `make_environment` (harness.run.environment.MakeEnvironment). A module is
imported only when its environment is used.
"""

from __future__ import annotations

from typing import Final

from harness.hosts import HOSTS
from targets import OWN_ENVIRONMENTS

ENVIRONMENTS: Final[dict[str, str]] = {
    **dict.fromkeys(HOSTS, "harness.environment.real"),
    **OWN_ENVIRONMENTS,
}

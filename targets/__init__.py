"""
Systems under test. A target is a package below this one that has a module `target` with `TARGET`.

harness/target/found.py finds them; nothing lists them. What stands here is asked before any of them is imported: a
broker's own process imports this package too and must not import the harness with it.
"""

from __future__ import annotations

from typing import Final

# The target that runs when none is named.
DEFAULT_TARGET: Final = "broker"
# Keys of a night's plan that list versions of one target; the key `targets` has TARGET:VERSION of any.
PLAN_KEYS: Final[dict[str, str]] = {"protocols": "broker", "releases": "kafka"}
# The environments that targets bring beside the hosts: the name -> a module with a `make_environment`.
OWN_ENVIRONMENTS: Final[dict[str, str]] = {"sim": "targets.simulator.broker.environment"}
# The one of them that runs the default target in virtual time.
VIRTUAL_HOST: Final = "sim"

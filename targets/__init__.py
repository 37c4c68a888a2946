"""
Systems under test: one line each in this table.

The values are modules, each with a `TARGET`, looked up by harness.registry.load: a broker's own process imports
this package too and must not import the harness with it.
"""

from __future__ import annotations

from typing import Final

TARGETS: Final[dict[str, str]] = {"broker": "targets.broker_target.target", "kafka": "targets.kafka.target"}

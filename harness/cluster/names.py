"""Words that stand in place of a protocol's name, or within it."""

from __future__ import annotations

from typing import Final

# The run's own protocol.
OWN: Final = "own"
# Between a program and the older protocol that it is to speak; alone before the latter, the program is the run's.
SPEAKS_AS: Final = "@"

"""Words that stand in place of a protocol's name, or within it."""

from __future__ import annotations

from typing import Final

# The run's own protocol.
OWN: Final = "own"
# Between a program and the older protocol that it is to speak; alone before the latter, the program is the run's.
SPEAKS_AS: Final = "@"


def protocol_of(name: str, own: str, target: str) -> str:
    """
    Return the protocol that a step names, as its target knows it.

    Args:
        name: OWN, `@kip101` for the run's program that speaks as that one, or a protocol, as `kafka:3.9.1`.
        own: the run's protocol.
        target: the name of the target.
    """
    if name == OWN:
        return own
    return (f"{own}{name}" if name.startswith(SPEAKS_AS) else name).removeprefix(f"{target}:")

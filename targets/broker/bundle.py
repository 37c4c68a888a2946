"""
What a node that runs this broker is given beside its own files, in an image or on another machine.

Harness hosts read it (harness/hosts/contents.py). Wheels are named as they are imported, and pinned in PINS; all
paths are from the top of the project.
"""

from __future__ import annotations

from typing import Final

WHEELS: Final = ("kazoo", "kio", "crc32c", "cramjam", "typing_extensions")
PINS: Final = "targets/broker/wheels.txt"
SOURCES: Final = (
    "harness/__init__.py",
    "harness/model.py",
    "harness/limits.py",
    "harness/registry.py",
    "targets/__init__.py",
    "targets/broker",
)

"""Folders of one's own targets, made by a test: our broker under another name, and some that are none."""

from __future__ import annotations

from pathlib import Path

TARGET = """
from targets.broker_target.target import BrokerTarget


class Mine(BrokerTarget):
    name = {name!r}


TARGET = Mine()
"""


def make_target(folder: Path, text: str = TARGET, file: str = "target.py") -> Path:
    """Make a target's folder, whose name is the target's; return it."""
    folder.mkdir(parents=True)
    (folder / file).write_text(text.replace("{name!r}", repr(folder.name)), encoding="utf-8")
    return folder

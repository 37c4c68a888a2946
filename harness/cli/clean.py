"""
`fencepost clean`: show the Docker images of other builds, and remove them.

It shows first what it would remove. On a terminal it then asks; elsewhere it removes nothing without --yes.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from harness import extras
from harness.model import EXIT_CODES
from harness.report.console import console as make_console
from harness.report.text import plural

if TYPE_CHECKING:
    from harness.hosts.old_images import OldImage

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument("--yes", action="store_true", help="remove them without a question")


def run(arguments: argparse.Namespace) -> int:
    """Show, ask, remove; return 3 if an image could not be removed, else 0; UsageError if no engine answers."""
    extras.require("docker", "fencepost clean")
    from harness.cleanup import engine
    from harness.hosts import old_images

    console = make_console(highlight=False, soft_wrap=True, markup=False)
    client = engine.connect()
    try:
        found = old_images.find(client)
        removable = [each for each in found if not each.kept]
        now_s = datetime.now(UTC).timestamp()
        for each in found:
            console.print(_line(each, now_s))
        if not removable:
            console.print("no image to remove: those of today's sources stay")
            return EXIT_CODES["valid"]
        total = f"{plural(len(removable), 'image')} of other builds, of older ones or of other checkouts"
        if not _agreed(arguments.yes, f"remove {total}? [y/N] "):
            console.print(f"nothing was removed; expected --yes to remove {total}")
            return EXIT_CODES["valid"]
        problems = [problem for each in removable if (problem := old_images.remove(client, each))]
    finally:
        client.close()
    for problem in problems:
        console.print(problem)
    console.print(f"{plural(len(removable) - len(problems), 'image')} removed")
    return EXIT_CODES["unknown"] if problems else EXIT_CODES["valid"]


def _line(image: OldImage, now_s: float) -> str:
    about = f"{image.tag:36} {image.size / 1e6:6,.0f} MB, {_age(now_s - image.created_s)} old"
    return f"keep    {about}: {image.kept}" if image.kept else f"remove  {about}"


def _age(seconds: float) -> str:
    """Return an age in its largest unit."""
    for unit, length in _UNITS:
        if seconds >= length:
            return plural(int(seconds // length), unit)
    return "less than a minute"


def _agreed(yes: bool, question: str) -> bool:
    """Return True if the user has agreed, by the option or on the terminal."""
    if yes or not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        return yes
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False

"""
`fencepost targets [NAME…]`: every target, with its versions, what it has and lacks, and where it was found.

Exit codes: 0 printed; 2 a target that is named is unknown or cannot be used.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from harness.ability import OF_TARGETS, Ability
from harness.environment.of_target import BROUGHT, why_lacking
from harness.model import EXIT_CODES
from harness.report.console import console as make_console
from harness.suite.options import configure_targets
from harness.target.commands import registered
from harness.target.found import Found, entry, found
from harness.target.parts import abilities as parts
from harness.target.target import Target
from targets import DEFAULT_TARGET


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these targets (default: all)")
    text = "print a line for each target as `make help` has it: the suite that `make test-NAME` plays"
    parser.add_argument("--make", action="store_true", help=text)
    configure_targets(parser)


def run(arguments: argparse.Namespace) -> int:
    """
    Print the targets.

    Raises:
        UsageError: one that is named is unknown, or cannot be used.
    """
    console = make_console(highlight=False, soft_wrap=True, markup=False)
    if arguments.make:
        for name, each in found().items():
            if f"test-{name}" in registered():  # the Makefile has it
                continue
            why = each.problem and f"cannot be used: {each.problem}"
            does = f"the suite of the target {name}: PROTOCOL= HOST= SCENARIO= JOBS= SEED="
            print(f"test-{name}\t{why or does}")
        return EXIT_CODES["valid"]
    for each in [entry(name) for name in arguments.names]:
        each.load()
    for each in [entry(name) for name in arguments.names] or found().values():
        why = each.why_not()
        told = "cannot be used" if why else "runs when no target is named" if each.name == DEFAULT_TARGET else ""
        console.print(f"{each.name}{f'  {told}' if told else ''}", style="yellow" if why else "bold")
        for label, text in [("reason", why)] if why else _lines(each.load()):
            console.print(f"  {label:9} {text}")
        console.print(f"  {'found':9} {_place(each)}")
    return EXIT_CODES["valid"]


def _lines(target: Target) -> Iterator[tuple[str, str]]:
    """Yield what a target has, line by line: parts, what can be asked of it, and what faults can do to it."""
    yield "versions", ", ".join(target.protocols())
    there = {
        **parts(target),
        **{ability.value: ability in target.abilities for ability in Ability if ability in OF_TARGETS},
        **{ability.value: not why_lacking(target, ability) for ability in BROUGHT},
    }
    for label, wanted in (("has", True), ("lacks", False)):
        if names := [name for name, has in there.items() if has is wanted]:
            yield label, ", ".join(names)


def _place(one: Found) -> str:
    return f"{one.where}, by --targets {one.given}" if one.given else one.where

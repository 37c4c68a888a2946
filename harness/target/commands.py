"""
Commands that a target's folder registers, in its module `commands`; it is read without the target itself.

The module has `COMMANDS`, the commands that this system alone has, by name. Where one of them does for this target
what `fencepost test` or `fencepost fetch` does for all, the module says so with `TEST` or `FETCH`. A target that
brings what it needs in its own way has a function `bring(versions, say)`, which `fencepost fetch` calls. One with
a long suite says with `USUAL` which scenarios `fencepost test` plays, and with `USUAL_VERSIONS` on which versions;
`--scenario all` plays the others too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from harness.model import UsageError
from harness.target.found import Found, found

MODULE = "commands"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: its module, with configure(parser) and run(arguments) -> exit code, and one line of help."""

    module: str
    help: str

    def load(self) -> ModuleType:
        """Import its module."""
        return import_module(self.module)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """
    A command of the target's own that stands for a general one.

    Attributes:
        words: the command's name, with the words that come first.
        version: the option before each version; "" if versions are words of their own.
    """

    words: tuple[str, ...]
    version: str = ""

    def of(self, versions: Sequence[str]) -> list[str]:
        """Return the words for these versions; () for all."""
        return [*self.words, *(word for each in versions for word in filter(None, (self.version, each)))]


def registered() -> Mapping[str, Command]:
    """Return the commands of all targets; those of a module that does not import are missing."""
    commands: dict[str, Command] = {}
    for each in found().values():
        try:
            commands |= getattr(each.module_of(MODULE), "COMMANDS", {})
        except UsageError:
            continue  # `fencepost targets` says why
    return commands


def spelled(one: Found, general: str) -> Spelled | None:
    """Return what stands for a general command, TEST or FETCH, of this target; None if nothing does."""
    own: Spelled | None = getattr(one.module_of(MODULE), general, None)
    return own


def bringing(one: Found) -> Callable[[Sequence[str], Callable[[str], None]], None] | None:
    """Return what brings versions of this target, () for all, and says what it does; None: it downloads files."""
    own: Callable[[Sequence[str], Callable[[str], None]], None] | None = getattr(
        one.module_of(MODULE), "bring", None
    )
    return own


def usual_versions(one: Found) -> tuple[str, ...]:
    """Return the versions on which `fencepost test` plays if it is asked for none; () for all."""
    found: tuple[str, ...] = getattr(one.module_of(MODULE), "USUAL_VERSIONS", ())
    return found


def usual(one: Found) -> tuple[str, ...]:
    """Return the patterns of the scenarios that `fencepost test` plays if it is asked for none."""
    found: tuple[str, ...] = getattr(one.module_of(MODULE), "USUAL", ("*",))
    return found

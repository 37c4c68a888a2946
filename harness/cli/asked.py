"""What `fetch` and `test` share: the targets and versions asked for, and the commands that stand for them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from harness.ending import Parser
from harness.model import UsageError
from harness.registry import pick
from harness.target.commands import registered
from harness.target.found import target


def asked(texts: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """
    Return each target of TARGET[:VERSION]…, with the versions that are asked for; () for all.

    Raises:
        UsageError: there is no such target or version, or the target cannot be used.
    """
    found: dict[str, dict[str, None]] = {}
    whole: set[str] = set()
    for text in texts:
        name, colon, version = text.partition(":")
        versions = target(name).protocols()
        if colon:
            pick(f"version of {name}", versions, version)
            found.setdefault(name, {})[version] = None
        else:
            found.setdefault(name, {})
            whole.add(name)
    return {name: () if name in whole else tuple(versions) for name, versions in found.items()}


def run_own(words: Sequence[str], arguments: argparse.Namespace) -> int:
    """Run a command that a target registers, with these words and the options given to the general one."""
    name, *rest = words
    commands = registered()
    if name not in commands:
        raise UsageError(f"command {name!r}: no target registers it; expected one of {', '.join(commands)}")
    module = commands[name].load()
    parser = Parser(prog=name)
    module.configure(parser)
    own = vars(parser.parse_args(rest))
    given = {key: value for key, value in vars(arguments).items() if key in own and value is not None}
    return int(module.run(argparse.Namespace(**{**own, **given})))

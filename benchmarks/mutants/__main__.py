"""
Run the gauntlet: `python -m benchmarks.mutants [MUTANT …]` searches each mutant, and says what found it.

For each it plays the seeds of `fencepost run --host sim --protocol kip380` with the broken core, in a process of
its own, up to the first finding. `--page` writes docs/mutants.md instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.mutants import MUTANTS
from benchmarks.mutants.mutant import Category, Mutant
from benchmarks.mutants.page import write_page
from benchmarks.mutants.search import Found, Gauntlet
from benchmarks.mutants.tables import line, print_tables
from harness import limits
from harness.ending import Parser, end, whole_number
from harness.model import UsageError
from harness.registry import pick

SEEDS: Final = 400


def chosen_mutants(names: Sequence[str], categories: Sequence[str], modules: Sequence[str]) -> list[Mutant]:
    """
    Return the mutants of these names, classes and modules; () means all.

    Raises:
        UsageError: there is no such mutant, or none is left.
    """
    named = [pick("mutant", MUTANTS, name) for name in names] or list(MUTANTS.values())
    found = [
        mutant
        for mutant in named
        if (not categories or mutant.category.value in categories) and (not modules or mutant.module in modules)
    ]
    if not found:
        raise UsageError("no mutant is of these names, classes and modules; expected at least one")
    return found


def main(arguments: Sequence[str]) -> int:
    """Search, or write the page."""
    parser = Parser(prog="python -m benchmarks.mutants", description="Search the core's mutants.")
    count, jobs = whole_number(1, limits.OPTION_SEEDS_MAX), whole_number(1, limits.OPTION_JOBS_MAX)
    modules = sorted({mutant.module for mutant in MUTANTS.values()})
    parser.add_argument("mutants", nargs="*", metavar="MUTANT", help="names of docs/mutants.md (default: all)")
    parser.add_argument(
        "--class",
        dest="categories",
        action="append",
        default=[],
        choices=[each.value for each in Category],
        help="only mutants of this class; may be repeated",
    )
    parser.add_argument(
        "--module", dest="modules", action="append", default=[], choices=modules, help="likewise of this module"
    )
    parser.add_argument("--seeds", type=count, default=SEEDS, help=f"at most so many for each (default: {SEEDS})")
    parser.add_argument(
        "--first-seed", type=whole_number(0, limits.OPTION_SEED_MAX), default=0, help="the first (default: 0)"
    )
    parser.add_argument("--jobs", type=jobs, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--scenarios", action="store_true", help="also name the scenarios that turn red")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was found to this file")
    parser.add_argument("--page", action="store_true", help="instead: write docs/mutants.md")
    return end("benchmarks.mutants", lambda: _run(parser.parse_args(arguments)))


def _run(chosen: argparse.Namespace) -> int:
    console = Console()
    if chosen.page:
        write_page()
        return 0
    mutants = chosen_mutants(chosen.mutants, chosen.categories, chosen.modules)
    if chosen.json:
        _write(chosen.json, [])  # what cannot be written ends the run now, not after an hour
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    found: list[Found] = []
    for each in Gauntlet(seeds, scenarios=chosen.scenarios).run(mutants, jobs=chosen.jobs):
        found.append(each)
        console.print(f"{len(found)}/{len(mutants)} {line(each)}", highlight=False, markup=False, soft_wrap=True)
        if chosen.json:
            _write(chosen.json, found)
    print_tables(mutants, {each.name: each for each in found}, console)
    return 0


def _write(path: Path, found: Sequence[Found]) -> None:
    rows = [{**each.to_dict(), **_about(MUTANTS[each.name])} for each in found]
    try:
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"option --json: {path}: {error.strerror}; expected a file that can be written"
        ) from error


def _about(mutant: Mutant) -> dict[str, str]:
    return {
        "module": mutant.module,
        "class": mutant.category.value,
        "equivalent": mutant.equivalent,
        "unreachable": mutant.unreachable,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

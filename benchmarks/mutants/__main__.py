"""
Run the gauntlet: `python -m benchmarks.mutants [MUTANT …]` searches each mutant, and says what found it.

For each it plays the seeds of `fencepost run --host sim --protocol kip380` with the broken core, in a process of
its own, up to the first finding: the seed that showed it before, then the others, without those that do not run
what it changes. A journal has what is done, and a killed gauntlet goes on from it. `--page` writes docs/mutants.md
instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.mutants import MUTANTS
from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.found_page import found_page
from benchmarks.mutants.hints import read_hints, written
from benchmarks.mutants.journal import Journal, short_name, state_of_sources
from benchmarks.mutants.mutant import Category, Mutant
from benchmarks.mutants.page import write_page
from benchmarks.mutants.progress import GauntletProgress
from benchmarks.mutants.search import Gauntlet
from benchmarks.mutants.tables import print_tables
from harness import limits
from harness.ending import Parser, end, whole_number
from harness.model import UsageError
from harness.night.lock import alone
from harness.registry import pick
from harness.suite.interrupts import INTERRUPTS

SEEDS: Final = 400
RESULTS: Final = Path("results/gauntlet")
PAGE, SHOWN = "found.md", "shown.txt"


def chosen_mutants(names: Sequence[str], categories: Sequence[str], modules: Sequence[str]) -> list[Mutant]:
    """
    Return the mutants of these names, classes and modules, in the order of their tables; () means all.

    Raises:
        UsageError: there is no such mutant, or none is left.
    """
    named = {pick("mutant", MUTANTS, name).name for name in names} or MUTANTS.keys()
    found = [
        mutant
        for mutant in MUTANTS.values()
        if mutant.name in named
        and (not categories or mutant.category.value in categories)
        and (not modules or mutant.module in modules)
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
    parser.add_argument(
        "--in-order",
        action="store_true",
        help="do not begin with the seed that showed a mutant before: find the first one that does",
    )
    parser.add_argument(
        "--every-seed",
        action="store_true",
        help="play also the seeds in which the core as it is runs nothing that a mutant changes; sooner for a few "
        "mutants, as no seed is played without them first",
    )
    parser.add_argument(
        "--jobs",
        type=jobs,
        default=os.cpu_count() or 1,
        help="so many mutants at once (default: one per core); what is found does not depend on it",
    )
    parser.add_argument("--scenarios", action="store_true", help="also name the scenarios that turn red")
    parser.add_argument(
        "--journal",
        type=Path,
        metavar="FOLDER",
        help="keeps what is done, so that a killed gauntlet goes on (default: a folder below results/gauntlet for "
        "these sources and options)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was found to this file")
    parser.add_argument("--page", action="store_true", help="instead: write docs/mutants.md")
    begun: list[Journal] = []

    def interrupted() -> str:
        return f"interrupted: {begun[0].path} goes on where it is; start again" if begun else "interrupted"

    return end("benchmarks.mutants", lambda: _run(parser.parse_args(arguments), begun), interrupted=interrupted)


def _run(chosen: argparse.Namespace, begun: list[Journal]) -> int:
    console = Console()
    if chosen.page:
        write_page()
        return 0
    mutants = chosen_mutants(chosen.mutants, chosen.categories, chosen.modules)
    if chosen.json:
        _write(chosen.json, "[]")  # what cannot be written ends the run now, not after an hour
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    hints = {} if chosen.in_order else read_hints()
    about = {
        "sources": state_of_sources(MUTANTS.values()),
        "seeds": [seeds.start, seeds.stop],
        "in order": chosen.in_order,
        "every seed": chosen.every_seed,
        "scenarios": chosen.scenarios,
    }
    folder = chosen.journal or RESULTS / short_name(about)
    with alone(folder, "gauntlet", "--journal"):
        journal = Journal(folder, about)
        begun.append(journal)
        survey = None if chosen.every_seed else journal.survey
        gauntlet = Gauntlet(seeds, hints=hints, survey=survey, scenarios=chosen.scenarios)
        _search(mutants, gauntlet, journal, chosen.jobs, console)
        found = {mutant.name: journal.done[mutant.name] for mutant in mutants}
        page = found_page(mutants, found, gauntlet)
        _write(folder / PAGE, page)
        _write(folder / SHOWN, _shown(journal.done.values()))
    if chosen.json:
        rows = [{**each.to_dict(), **_about(each)} for each in found.values()]
        _write(chosen.json, json.dumps(rows, indent=1))
    print_tables(mutants, found, console)
    spent = sum(each.cpu_s for each in found.values())
    console.print(
        f"{spent / 60:.1f} min of processor time; page: {folder / PAGE}", highlight=False, soft_wrap=True
    )
    return 0


def _search(mutants: Sequence[Mutant], gauntlet: Gauntlet, journal: Journal, jobs: int, console: Console) -> None:
    """Search those that the journal lacks."""
    names = [mutant.name for mutant in mutants]
    done = [journal.done[name] for name in names if name in journal.done]
    if done:
        console.print(
            f"{len(done)} of {len(mutants)} stand in {journal.path} and are not searched again; "
            "delete its folder to search them anew",
            highlight=False,
            soft_wrap=True,
        )
    waiting = [mutant for mutant in mutants if mutant.name not in journal.done]
    if waiting and gauntlet.survey is not None:
        _survey(gauntlet, journal, jobs, console)
    with GauntletProgress(console, gauntlet, names, done) as progress:
        for found in gauntlet.run(waiting, jobs=jobs):
            _require_same_sources(journal)
            with INTERRUPTS.shielded():
                journal.add(found)
            progress.end(found)


def _survey(gauntlet: Gauntlet, journal: Journal, jobs: int, console: Console) -> None:
    """Play the seeds that the journal lacks with the core as it is."""
    for chunk in gauntlet.look(jobs=jobs):
        _require_same_sources(journal)
        for surveyed in chunk:
            with INTERRUPTS.shielded():
                journal.add_surveyed(surveyed)
        text = f"survey: {len(journal.survey.done)} of {len(gauntlet.seeds)} seeds: which mutants each can show"
        console.print(text, highlight=False, soft_wrap=True)


def _require_same_sources(journal: Journal) -> None:
    """Raise UsageError if a file was changed: what was found just now may be of either state."""
    if state_of_sources(MUTANTS.values()) != journal.about["sources"]:
        raise UsageError(
            f"sources: changed while the gauntlet ran; expected them as they were at its start; what stands in "
            f"{journal.path} is of before; put them back and start again, or begin anew"
        )


def _shown(found: Iterable[Found]) -> str:
    """Return shown.txt with the seeds of now; a mutant that was not found keeps the seed that it had."""
    seeds = {
        each.name: each.seed for each in found if each.outcome is Outcome.FOUND and isinstance(each.seed, int)
    }
    return written({**read_hints(), **seeds}, MUTANTS)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text + ("" if text.endswith("\n") else "\n"), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected a file that can be written") from error


def _about(found: Found) -> dict[str, Any]:
    mutant = MUTANTS[found.name]
    return {
        "module": mutant.module,
        "class": mutant.category.value,
        "equivalent": mutant.equivalent,
        "unreachable": mutant.unreachable,
    }


if __name__ == "__main__":
    INTERRUPTS.catch()
    sys.exit(main(sys.argv[1:]))

"""
`fencepost kafka list|fetch RELEASE…`: which releases of Apache Kafka can be run, and having their jars.

Exit codes:  0 done; 2 a release is unknown, Maven Central cannot be reached, or a jar is not as it was pinned.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from rich.console import Console

from harness.model import EXIT_CODES, UsageError
from targets.kafka.fetch import MAVEN_CENTRAL, PlainSource, default_source, fetch, plan
from targets.kafka.jars import cache_dir
from targets.kafka.releases import Entry, Release, entries, release_of, releases


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("what", choices=("list", "fetch"), help="show the table of releases, or bring jars")
    parser.add_argument(
        "releases",
        metavar="RELEASE",
        nargs="*",
        help="which ones, such as 3.9.1; for list all when none is named",
    )
    parser.add_argument(
        "--repository",
        metavar="URL",
        help=f"take the jars from this Maven repository; else Maven does, or without it {MAVEN_CENTRAL}",
    )


def run(args: argparse.Namespace) -> int:
    """
    List or fetch; give the exit code.

    Raises:  UsageError, which is exit code 2, when there is no such release or its jars cannot be had.
    """
    console = Console(highlight=False, soft_wrap=True, markup=False)
    wanted = [release_of(name) for name in dict.fromkeys(args.releases)]
    if args.what == "list":
        console.print(f"{'target':20} {'models':14} what", style="bold")
        for line in _lines(wanted or list(releases().values())):
            console.print(line)
        return EXIT_CODES["valid"]
    if not wanted:
        raise UsageError(f"kafka fetch: no release named; expected some of {', '.join(releases())}")
    source = PlainSource(args.repository) if args.repository else default_source()
    done = fetch(wanted, cache_dir(), source, console.print)
    if done.wanted:
        console.print(f"{len(done.wanted)} jars brought, each as its checksum says")
    return EXIT_CODES["valid"]


def _lines(wanted: Sequence[Release]) -> Iterator[str]:
    """One line for each release, one below it for each of its variants."""
    for entry in entries().values():
        if entry.release not in wanted:
            continue
        about = _settings(entry) if entry.properties else f"{_jars(entry.release)}. {entry.release.note}"
        yield f"kafka:{entry.name:14} {entry.models:14} {about}"


def _settings(entry: Entry) -> str:
    return ", ".join(f"{name}={value}" for name, value in entry.properties.items())


def _jars(release: Release) -> str:
    found = plan([release], cache_dir())
    size = f"{len(found.jars)} jars, {sum(jar.size for jar in found.jars) / 1e6:.0f} MB"
    return f"{size}, {len(found.wanted) or 'none'} to fetch"

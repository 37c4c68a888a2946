"""
`fencepost kafka list|fetch RELEASE…`: list the supported releases of Apache Kafka, or fetch their jars.

Exit codes: 0 done; 2 a release is unknown, Maven Central cannot be reached, or a jar differs from its pinned
checksum.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from harness.model import EXIT_CODES, UsageError
from harness.report.console import console as make_console
from targets.kafka.fetch import MAVEN_CENTRAL, PlainSource, default_source, fetch, plan
from targets.kafka.jars import cache_dir
from targets.kafka.releases import Entry, Release, entries, release_of, releases


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("what", choices=("list", "fetch"), help="print the table of releases, or fetch jars")
    parser.add_argument(
        "releases",
        metavar="RELEASE",
        nargs="*",
        help="the releases, or variants of them, such as 3.9.1 (default of list: all)",
    )
    parser.add_argument(
        "--repository",
        metavar="URL",
        help=f"fetch the jars from this Maven repository (default: Maven's; {MAVEN_CENTRAL} without Maven)",
    )


def run(args: argparse.Namespace) -> int:
    """
    List or fetch; return the exit code.

    Raises:
        UsageError: there is no such release, or its jars cannot be fetched; exit code 2.
    """
    console = make_console(highlight=False, soft_wrap=True, markup=False)
    named = (entries()[name].release if name in entries() else release_of(name) for name in args.releases)
    wanted = list({release.name: release for release in named}.values())
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
    """Yield a line for each release, each followed by the lines of its variants."""
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

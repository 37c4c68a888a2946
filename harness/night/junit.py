"""
A night as JUnit's XML, which CI servers read: a suite for each host, a case for each line.

A line that is not as expected has a failure, one that is unknown an error, and one that is left out is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from harness.night.outcome import BAD, LEFT_OUT, UNKNOWN, Line, Outcome
from harness.report.text import clean


def junit_of(outcome: Outcome) -> str:
    """Return the night as a document of JUnit's XML."""
    root = ET.Element("testsuites", {"name": "fencepost nightly", **_totals(outcome.lines)})
    for host in dict.fromkeys(line.host for line in outcome.lines):
        lines = [line for line in outcome.lines if line.host == host]
        about = {"name": host, "timestamp": str(outcome.about["started"])[:19]}
        suite = ET.SubElement(root, "testsuite", {**about, **_totals(lines)})
        for line in lines:
            _add_case(suite, line)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _totals(lines: Sequence[Line]) -> dict[str, str]:
    return {
        "tests": str(len(lines)),
        "failures": str(sum(line.status == BAD for line in lines)),
        "errors": str(sum(line.status == UNKNOWN for line in lines)),
        "skipped": str(sum(line.status == LEFT_OUT for line in lines)),
        "time": f"{sum(line.used_s for line in lines):.3f}",
    }


def _add_case(suite: ET.Element, line: Line) -> None:
    name = {"classname": f"fencepost.{line.host}.{line.role}", "name": clean(line.name)}
    case = ET.SubElement(suite, "testcase", {**name, "time": f"{line.used_s:.3f}"})
    if line.status in (BAD, UNKNOWN):
        tag = "failure" if line.status == BAD else "error"
        about = ET.SubElement(case, tag, {"message": clean(line.why), "type": line.status})
        about.text = clean("\n".join(_told(line)))
    if line.status == LEFT_OUT:
        ET.SubElement(case, "skipped", {"message": clean(line.why)})
    ET.SubElement(
        case, "system-out"
    ).text = f"{line.count.runs} runs, {sum(line.count.bit.values())} faults took effect"


def _told(line: Line) -> list[str]:
    told = list(line.problems)
    for finding in line.count.findings:
        told += [f"seed {finding.seed}: {finding.verdict}", *(f"  {sentence}" for sentence in finding.sentences)]
        told.append(f"  again: {finding.again}")
    return told

"""
The cause of a finding: what kind of anomaly it is, which checker proved it, and how the proof says it came about.

Two runs have one cause if their proofs say the same of other nodes, offsets, records and moments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from harness.model import Anomaly, Kind
from harness.run.result import RunResult

CHARACTERS_MAX: Final = 240
# Where a sentence begins to say how it came about: a loss that nothing excuses, then any other.
_EXCUSED: Final = "not permitted, as "
_ORDER: Final = {kind: place for place, kind in enumerate(Kind)}
_OPEN: Final = re.compile(r",? (?:at|until|from|since) \d+(\.\d+)? s\b| \([^()]*\d[^()]*\)")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_NUMBERED: Final = re.compile(r"\b[\w.@/–-]*\d[\w.@/–-]*")
_NODE: Final = re.compile(r"\b[A-Z]\b")
_CLAUSE: Final = re.compile(r" and (?=[A-Z] (?:was|had|truncated|lost|is|has|began|ended|did)\b)")
_NODES: Final = re.compile(r"a node(?:(?:,| and|, and)? a node)+")


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Cause:
    """
    A cause.

    Attributes:
        kind: of the anomaly.
        checker: that proved it; "" for what the harness itself says.
        text: how it came about, without nodes, offsets, records and times; "" if the proof does not say.
    """

    kind: str
    checker: str
    text: str


def cause_of(result: RunResult) -> Cause:
    """
    Return the cause of a run with a finding: that of its gravest anomaly.

    Of several as grave the first of the model's kinds counts: losses before what leads to them, the checkers'
    proofs before the oracles'.
    """
    told = [each for each in result.anomalies if each.kind is not Kind.VACUOUS]
    first = max(told, key=lambda each: (each.verdict, -_ORDER[each.kind]))
    return Cause(kind=first.kind.value, checker=first.checker, text=_how(first))


def _how(anomaly: Anomaly) -> str:
    text = anomaly.sentence.rstrip(".")
    if _EXCUSED in text:
        # One clause for each node that is to blame: which nodes, and how many, is no part of the cause.
        clauses = {without_names(clause) for clause in _CLAUSE.split(text.partition(_EXCUSED)[2])}
        return " and ".join(sorted(clauses)).replace("excuses nodes", "excuses a node")[:CHARACTERS_MAX]
    return without_names(text.partition(": ")[2] or text)[:CHARACTERS_MAX]


def without_names(text: str) -> str:
    """Return a sentence without what differs from run to run: times, offsets, records, nodes."""
    text = _OPEN.sub("", text)
    text = _NUMBERED.sub("N", _NODE.sub("a node", _QUOTED.sub("…", text)))
    return " ".join(_NODES.sub("nodes", text).split())

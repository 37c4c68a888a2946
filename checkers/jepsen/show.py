"""Findings for people, as sentences, and for scripts, in Jepsen's form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from checkers.jepsen.finding import Finding
from checkers.jepsen.history import JepsenHistory, Op
from checkers.jepsen.measures import consume_counts, worst_realtime_lag
from checkers.jepsen.verdict import Column, Verdict

# Jepsen itself shows 8 or 32 of a kind.
_RAW_MAX: Final = 32
_VALUES_MAX: Final = 8
_OPS_MAX: Final = 12


def verdicts(history: JepsenHistory, judged: Mapping[Column, Verdict]) -> dict[str, Any]:
    """Return the verdicts by column as JSON: the first with its findings, the others with their counts."""
    found = {str(column): _raw_verdict(verdict) for column, verdict in judged.items()}
    column, verdict = next(iter(judged.items()))
    if not verdict.crash:
        found[str(column)] |= {
            "errors": _errors(verdict.findings),
            "info-txn-causes": [*history.info_causes],
            "consume-counts": consume_counts(history.ops),
            "worst-realtime-lag": worst_realtime_lag(history.ops),
        }
    return found


def by_kind(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the findings of each kind, by kind; the most telling first: those that went furthest."""
    for kind, of_kind in groupby(sorted(findings, key=lambda each: each.kind), key=lambda each: each.kind):
        yield kind, sorted(of_kind, key=_how_far, reverse=True)


def sentence(finding: Finding) -> str:
    """Return what was found: key, offsets, values, operations and their lines."""
    return _SENTENCES.get(finding.kind, _cycle)(finding)


def _how_far(finding: Finding) -> int:
    return abs(finding.delta) or len(finding.offsets)


def _raw_verdict(verdict: Verdict) -> dict[str, Any]:
    if verdict.crash:
        return {"valid": "crashed", "error": verdict.crash}
    counts = verdict.counts
    return {
        "valid": verdict.valid,
        "error-types": [*counts],
        "bad-error-types": [*verdict.bad],
        "counts": counts,
    }


# --- for scripts -------------------------------------------------------------------------------------------------
def _errors(findings: Sequence[Finding]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, of_kind in by_kind(findings):
        if kind == "empty-transaction-graph":
            found[kind] = True
        elif kind == "unseen":
            found[kind] = _raw_unseen(of_kind[0])
        else:
            found[kind] = [_raw(each) for each in of_kind[:_RAW_MAX]]
    return found


def _raw_unseen(finding: Finding) -> dict[str, Any]:
    messages = finding.more["messages"]
    return {
        "messages": {str(key): values[:_RAW_MAX] for key, values in messages.items()},
        "time": finding.ops[0].time,
        "unseen": {str(key): len(values) for key, values in messages.items()},
    }


def _raw(finding: Finding) -> dict[str, Any]:
    kind, ops = finding.kind, [op.to_dict() for op in finding.ops]
    of: dict[str, Any] = {} if finding.key is None else {"key": finding.key}
    if kind == "inconsistent-offsets":
        return {**of, "offset": finding.offsets[0], "values": [*finding.values], **finding.more}
    if kind == "duplicate":
        return {
            **of,
            "value": finding.values[0],
            "count": len(finding.offsets),
            "offsets": [*finding.offsets[:_RAW_MAX]],
        }
    if kind == "lost-write":
        return {**of, "value": finding.values[0], "writer": ops[0], "max-read": ops[1], **finding.more}
    if kind == "G1a":
        return {**of, "value": finding.values[0], "writer": ops[0], "reader": ops[1]}
    if kind == "precommitted-read":
        return {**of, "value": finding.values[0], "op": ops[0]}
    if kind.endswith("-cycle-exists"):
        scc = [op.index for op in finding.ops]
        return {"type": kind, **finding.more, "scc": scc[:_RAW_MAX], "scc-size": len(scc)}
    if "steps" in finding.more:
        return {"type": kind, "cycle": ops, **finding.more}
    skipped = {"skipped": [*finding.skipped]} if finding.skipped else {}
    about = {"op": ops[0]} if len(ops) == 1 else {"ops": ops}
    return {**of, "values": [*finding.values], "delta": finding.delta, **about, **skipped}


# --- for people --------------------------------------------------------------------------------------------------
def _op(op: Op) -> str:
    return f"op {op.index} (line {op.line}: {op.type} {op.f} of process {op.process})"


def _listed(values: Sequence[Any], most: int = _VALUES_MAX) -> str:
    """Return values with commas; of many the first, and how many more."""
    shown = ", ".join(map(repr, values[:most]))
    return f"{shown} and {len(values) - most:,} more" if len(values) > most else shown


def _inconsistent(finding: Finding) -> str:
    return f"key {finding.key!r}: offset {finding.offsets[0]} has the values {_listed(finding.values)}"


def _duplicate(finding: Finding) -> str:
    return f"key {finding.key!r}: value {finding.values[0]!r} is at the offsets {_listed(finding.offsets)}"


def _lost(finding: Finding) -> str:
    writer, reader = finding.ops
    return (
        f"key {finding.key!r}: value {finding.values[0]!r} at offset {finding.offsets[0]}, sent by {_op(writer)}, "
        f"was polled by none, although {_op(reader)} polled offset {finding.offsets[1]}"
    )


def _unseen(finding: Finding) -> str:
    messages = finding.more["messages"]
    parts = [f"key {key!r}: {_listed(values)}" for key, values in messages.items()]
    more = f"; and {len(parts) - _VALUES_MAX:,} more keys" if len(parts) > _VALUES_MAX else ""
    return f"no ok operation polled these values: {'; '.join(parts[:_VALUES_MAX])}{more}"


def _aborted(finding: Finding) -> str:
    writer, reader = finding.ops
    return f"key {finding.key!r}: {_op(reader)} polled value {finding.values[0]!r}, which {_op(writer)} sent"


def _precommitted(finding: Finding) -> str:
    return f"key {finding.key!r}: {_op(finding.ops[0])} polled value {finding.values[0]!r}, which it sent itself"


def _moved(finding: Finding) -> str:
    """Return the sentence of a skip, or of a step back."""
    (before, after), (one, two) = finding.values, finding.offsets
    did = "sent" if finding.kind.endswith(("send", "send-skip")) else "polled"
    if len(finding.ops) == 1:
        who = f"{_op(finding.ops[0])} {did} value {before!r} at offset {one}, then {after!r} at {two}"
    else:
        first, last = finding.ops
        ended = f"{_op(first)} ended with value {before!r} at offset {one}"
        who = f"{ended}, and {_op(last)} began with {after!r} at {two}"
    between = finding.delta - 1
    skipped = f", over {_listed(finding.skipped)}" if finding.skipped else ""
    if between > len(finding.skipped):
        skipped += f" ({between:,} in all)"
    return f"key {finding.key!r}: {who}{skipped}"


def _empty(_: Finding) -> str:
    return "no operation depends on another, so the history proves nothing"


def _exists(finding: Finding) -> str:
    kinds = ", ".join(finding.more["subgraph"][1:])
    numbers = _listed([op.index for op in finding.ops], _OPS_MAX)
    level = finding.more["not"]
    return f"{len(finding.ops):,} operations depend on each other by {kinds}, against {level}: {numbers}"


def _cycle(finding: Finding) -> str:
    steps = finding.more["steps"]
    shown = [_because(one, step) for one, step in zip(finding.ops, steps[:_OPS_MAX], strict=False)]
    more = [f"{len(steps) - _OPS_MAX:,} more steps"] if len(steps) > _OPS_MAX else []
    return "; ".join([*shown, *more, f"back to {_op(finding.ops[-1])}"])


def _because(op: Op, step: Mapping[str, Any]) -> str:
    if step["type"] == "ww":
        after = step["value'"]
        return f"{_op(op)} sent {step['value']!r} to key {step['key']!r}, directly below {after!r}"
    if step["type"] == "wr":
        return f"{_op(op)} sent {step['value']!r} to key {step['key']!r}, which was polled"
    return f"{_op(op)} ended before op {step['b']['index']} was invoked"


_SENTENCES: Final[Mapping[str, Callable[[Finding], str]]] = {
    "inconsistent-offsets": _inconsistent,
    "duplicate": _duplicate,
    "lost-write": _lost,
    "unseen": _unseen,
    "G1a": _aborted,
    "precommitted-read": _precommitted,
    "poll-skip": _moved,
    "nonmonotonic-poll": _moved,
    "int-poll-skip": _moved,
    "int-nonmonotonic-poll": _moved,
    "nonmonotonic-send": _moved,
    "int-nonmonotonic-send": _moved,
    "int-send-skip": _moved,
    "empty-transaction-graph": _empty,
    "PL-1-cycle-exists": _exists,
    "PL-2-cycle-exists": _exists,
    "strong-PL-1-cycle-exists": _exists,
    "strong-PL-2-cycle-exists": _exists,
}

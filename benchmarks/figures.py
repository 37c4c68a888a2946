"""
The arithmetic of the benchmark: percentiles, spreads over repeats, ratios of ours to theirs, and the table.

Ratios are taken within a repeat, in which the peers were measured one after the other, and the table has their
median: if the machine is busier in one repeat, it slows both measurements of a ratio alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, TypeAlias

from benchmarks.job import Measured, Work

OURS: Final = "ours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """
    One kind of load, a group of rows of the table.

    Attributes:
        replicas: of each partition; with as many as the ISR has, acks=all waits for f followers of an ISR of f+1.
        flushed: whether the brokers flush each message before they acknowledge it.
    """

    acks: int
    record_bytes: int
    partitions: int = 1
    replicas: int = 3
    flushed: bool = False

    def __str__(self) -> str:
        size = f"{self.record_bytes / 1000:g} KB" if self.record_bytes >= 1000 else f"{self.record_bytes} B"
        more = f", {self.partitions:,} partitions" if self.partitions > 1 else ""
        more += f", {self.replicas} replicas" if self.replicas != 3 else ""
        return f"acks={'all' if self.acks == -1 else self.acks}, {size}{more}{', flushed' if self.flushed else ''}"


# One repeat of one load on one peer.
Repeat: TypeAlias = Mapping[Work, Measured]
# Peer -> its repeats, in order; the n-th repeats of all peers were measured one after the other.
Repeats: TypeAlias = Mapping[str, Sequence[Repeat]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A row of the table: a value of one repeat."""

    name: str
    work: Work
    take: Callable[[Measured], float | None]


FIGURES: Final = (
    Figure(name="produce MB/s", work=Work.PRODUCE, take=lambda m: m.mb_per_s),
    Figure(name="produce records/s", work=Work.PRODUCE, take=lambda m: m.records_per_s),
    Figure(name="produce p50 ms", work=Work.PRODUCE, take=lambda m: m.p50_ms),
    Figure(name="produce p99 ms", work=Work.PRODUCE, take=lambda m: m.p99_ms),
    Figure(name="broker CPU ms/MB", work=Work.PRODUCE, take=lambda m: m.broker_cpu_ms_per_mb),
    Figure(name="client CPU ms/MB", work=Work.PRODUCE, take=lambda m: m.client_cpu_ms_per_mb),
    Figure(name="alone p50 ms", work=Work.ALONE, take=lambda m: m.p50_ms),
    Figure(name="alone p99 ms", work=Work.ALONE, take=lambda m: m.p99_ms),
    Figure(name="consume MB/s", work=Work.CONSUME, take=lambda m: m.mb_per_s),
    Figure(name="consume CPU ms/MB", work=Work.CONSUME, take=lambda m: m.broker_cpu_ms_per_mb),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The minimum, median and maximum of some repeats."""

    least: float
    middle: float
    most: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread | None:
        """Return the spread of the values, None if there are none."""
        return Spread(least=min(values), middle=median(values), most=max(values)) if values else None

    def __str__(self) -> str:
        return f"{short(self.middle)} ({short(self.least)} … {short(self.most)})"


def percentile(rising: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share (0 to 1) of the values do not exceed (nearest rank)."""
    assert rising, "no values"
    rank = -(-len(rising) * share // 1)  # rounded up
    return rising[max(0, int(rank) - 1)]


def short(value: float) -> str:
    """Format a value with three significant digits and no exponent: 0.0123, 1.23, 12.3, 123, 12,345."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.4f}" if "e" in text else text


def values_of(repeats: Sequence[Repeat], figure: Figure) -> list[float | None]:
    """Return a figure of every repeat, None for a repeat without it."""
    return [figure.take(one[figure.work]) if figure.work in one else None for one in repeats]


def ratios(ours: Sequence[float | None], theirs: Sequence[float | None]) -> list[float]:
    """Return ours/theirs of every repeat in which both have a figure and theirs is not zero."""
    return [a / b for a, b in zip(ours, theirs, strict=False) if a is not None and b]


def table(results: Mapping[Load, Repeats]) -> list[tuple[str, ...]]:
    """
    Return the rows of the table, the head first.

    Returns:
        One row for each (load, figure): the load (in its first row only), the figure, each peer's spread over the
        repeats, then for each peer but ours the ratio ours/theirs; "-" for a missing value.
    """
    peers = list(dict.fromkeys(peer for repeats in results.values() for peer in repeats))
    others = [peer for peer in peers if peer != OURS and OURS in peers]
    rows: list[tuple[str, ...]] = [("load", "figure", *peers, *(f"ours / {peer}" for peer in others))]
    for load, repeats in results.items():
        for number, figure in enumerate(FIGURES):
            found = {peer: values_of(repeats.get(peer, ()), figure) for peer in peers}
            spreads = [_text(Spread.of([v for v in found[peer] if v is not None])) for peer in peers]
            beside = [_text(Spread.of(ratios(found[OURS], found[peer]))) for peer in others]
            rows.append(("" if number else str(load), figure.name, *spreads, *beside))
    return rows


def _text(spread: Spread | None) -> str:
    return "-" if spread is None else str(spread)


def shares_of_throughput(results: Mapping[Load, Repeats]) -> list[tuple[Load, str, str, float]]:
    """Return (load, figure, peer, median ratio ours/theirs) for every throughput in MB/s that both have."""
    found: list[tuple[Load, str, str, float]] = []
    for load, repeats in results.items():
        for figure in (one for one in FIGURES if one.name.endswith("MB/s")):
            for peer in (name for name in repeats if name != OURS):
                pairs = ratios(values_of(repeats.get(OURS, ()), figure), values_of(repeats[peer], figure))
                if pairs:
                    found.append((load, figure.name, peer, median(pairs)))
    return found

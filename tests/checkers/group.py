"""
Histories of a group of which a majority has what is committed, whose nodes report nothing and are polled.

`python -m tests.checkers.group` rewrites the runs of these groups in tests/checkers/runs, which plants change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Self

from harness.logs.record import sent_digest
from harness.model import Op, OpType, Source
from harness.target.traits import Commit, Epochs, Seen, Traits
from tests.checkers.story import TOPIC
from tests.events.filled import filled

RUNS: Final = Path(__file__).with_name("runs")
TRAITS: Final = Traits(
    metadata="the group's state",
    epochs=Epochs.BESIDE,
    commit=Commit.QUORUM,
    dense=False,
    first_offset=1,
    seen=Seen.POLLED,
    names_controller=False,
    shows_members=False,
)
NODES: Final = {"A": 1, "B": 2, "C": 3, "D": 4, "E": 5}
# (name of the group of records, value), from offset 1 on.
RECORDS: Final = (("m1", "m1.0"), ("m1", "m1.1"), ("m1", "m1.2"), ("m2", "m2.0"), ("m2", "m2.1"))


class Group:
    """Builds the ops of a run in which A leads term 1, and B term 3. Method names say what is seen, `ms` when."""

    def __init__(self, members: str = "ABC", traits: Traits = TRAITS) -> None:
        self.ops: list[Op] = []
        self.members = members
        self._version = 0
        groups: dict[str, list[str]] = {}
        for name, value in RECORDS:
            groups.setdefault(name, []).append(value)
        setup = {
            "scenario": "made",
            "protocol": "1",
            "host": "local",
            "target": "made",
            "seed": 1,
            "power_tier": "loop",
            "nodes": NODES,
            "replicas": list(members),
            "records": groups,
            "rules": {},
            "min_isr": 1,
            "unclean": False,
            "sends_once": True,
        }
        self._add(
            0, Source.RUNNER, "setup", OpType.INFO, "runner", **TOPIC, **setup, traits=dict(traits.as_text())
        )

    def leads(self, node: str | None, term: int, *, ms: int, members: str = "") -> Self:
        """Add a look at the group's state that shows a change."""
        state = {"leader": node, "epoch": term, "isr": list(members or self.members), "version": self._version}
        self._version += 1
        return self._add(ms, Source.METADATA, "state", OpType.INFO, "metadata", **TOPIC, **state)

    def acked(self, name: str, value: str, offset: int, *, ms: int) -> Self:
        """Add a produce that is acknowledged five milliseconds later."""
        sent = {**TOPIC, "name": name, "acks": -1, "codec": "none", "value": value, "digest": sent_digest(value)}
        self._add(ms, Source.CLIENT, "produce", OpType.INVOKE, "client-1", **sent)
        del sent["digest"]
        return self._add(ms + 5, Source.CLIENT, "produce", OpType.OK, "client-1", **sent, offset=offset)

    def healed(self, *, ms: int) -> Self:
        """Add that all faults were healed."""
        return self._add(ms, Source.RUNNER, "healed", OpType.OK, "runner")

    def log(self, node: str, records: Sequence[tuple[int, str]], *, ms: int, start: int = 1) -> Self:
        """Add a final log, one record a batch."""
        end = records[-1][0] + 1 if records else start
        log = {"log_start_offset": start, "log_end_offset": end, "batches": len(records), "problems": []}
        self._add(ms, Source.LOG, "snapshot", OpType.OK, node, **TOPIC, **log)
        for offset, value in records:
            stored = {"epoch": -1, "magic": 2, "crc": 1, "codec": "none", "segment": "log"}
            held = {"base": offset, "last": offset, "records": [[offset, sent_digest(value), value]]}
            self._add(ms, Source.LOG, "batch", OpType.OK, node, **TOPIC, **stored, **held)
        return self

    def read(self, records: Iterable[tuple[int, str]], high_watermark: int, *, ms: int) -> Self:
        """Add the final read."""
        self._add(ms, Source.CLIENT, "read", OpType.INVOKE, "client-2", **TOPIC)
        shown = {"records": [list(each) for each in records], "high_watermark": high_watermark, "start": 1}
        return self._add(ms + 5, Source.CLIENT, "read", OpType.OK, "client-2", **TOPIC, **shown)

    def done(self, *, ms: int) -> Self:
        """Add the end of the run."""
        return self._add(ms, Source.RUNNER, "done", OpType.INFO, "runner")

    def _add(self, ms: int, source: Source, f: str, type_: OpType, process: str, **value: Any) -> Self:
        op = Op(
            index=len(self.ops),
            time_ns=ms * 1_000_000,
            source=source,
            process=process,
            type=type_,
            f=f,
            value=filled(source, f, value, type_),
        )
        self.ops.append(op)
        return self


def clean(members: str = "ABC") -> Group:
    """Return a run without a fault."""
    group = Group(members).leads("A", 1, ms=10)
    records = [(offset, value) for offset, (_, value) in enumerate(RECORDS, 1)]
    for offset, (name, value) in enumerate(RECORDS, 1):
        if offset == 4:
            group.leads("B", 3, ms=3_500)
        group.acked(name, value, offset, ms=1_000 * offset)
    group.healed(ms=8_000)
    for node in members:
        group.log(node, records, ms=9_000)
    return group.read(records, len(RECORDS) + 1, ms=10_000).done(ms=11_000)


MADE: Final = {"made-group": "ABC", "made-group-of-four": "ABCD", "made-group-of-five": "ABCDE"}


def text_of(run: str) -> str:
    """Return the text that the run's file must have."""
    return "".join(op.to_json() + "\n" for op in clean(MADE[run]).ops)


if __name__ == "__main__":
    for each in MADE:
        (RUNS / f"{each}.jsonl").write_text(text_of(each), encoding="utf-8")

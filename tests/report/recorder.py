"""Write a history by hand, line by line, as a run would: the clock advances with every line."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.model import Op, OpType, Source
from tests.events.filled import filled

TOPIC: Final = "fencepost"
PLACE: Final[Mapping[str, Any]] = {"topic": TOPIC, "partition": 0}


def digest(value: str) -> str:
    """Return a digest of the value, sixteen hex digits."""
    return hashlib.sha256(value.encode()).hexdigest()[:16]


class Recorder:
    """A history under construction; methods that return an int return the index of the last line written."""

    def __init__(self, ids: Mapping[str, int], records: Mapping[str, Sequence[str]]) -> None:
        self.ops: list[Op] = []
        self.ids = ids
        self.records = records
        self.now_ns = 0
        self._line = 0

    def wait(self, milliseconds: float) -> None:
        """Advance the clock."""
        self.now_ns += int(milliseconds * 1e6)

    def op(self, source: Source, process: str, f: str, kind: OpType = OpType.INFO, **value: Any) -> int:
        """Write one line."""
        self.now_ns += 137_211
        op = Op(
            index=len(self.ops),
            time_ns=self.now_ns,
            source=source,
            process=process,
            type=kind,
            f=f,
            value=filled(source, f, {**PLACE, **value} if source is Source.CLIENT else value, kind),
        )
        self.ops.append(op)
        return op.index

    def setup(
        self, scenario: str, protocol: str, rules: Mapping[str, str], replicas: str = "AB", **more: Any
    ) -> int:
        """Write the first line of a history."""
        return self.op(
            Source.RUNNER,
            "runner",
            "setup",
            scenario=scenario,
            protocol=protocol,
            rules=dict(rules),
            host="local",
            target="broker",
            seed=42,
            power_tier="loop",
            nodes=dict(self.ids),
            replicas=list(replicas),
            **PLACE,
            records={name: list(values) for name, values in self.records.items()},
            min_isr=1,
            unclean=False,
            **more,
        )

    def step(self, text: str, narrative: str = "") -> _Step:
        """Record a step: `with recorder.step("kill A", "A dies."):`."""
        self._line += 3
        return _Step(self, {"line": self._line, "text": text, "narrative": narrative})

    def broker(self, node: str, f: str, **value: Any) -> int:
        """Write a broker's event about the partition."""
        return self.op(Source.BROKER, node, f, **{**PLACE, **value})

    def fabric(self, f: str, follower: str, leader: str, **value: Any) -> int:
        """Write an event of the fabric on a link."""
        return self.op(Source.FABRIC, "fabric", f, link=[follower, leader], **value)

    def fault(self, f: str, node: str, ms: float, probe: str, **nature: Any) -> int:
        """Write a fault's invoke and ok."""
        self.op(Source.NEMESIS, "nemesis", f, OpType.INVOKE, nodes=[node], **nature)
        self.wait(ms)
        return self.op(Source.NEMESIS, "nemesis", f, OpType.OK, nodes=[node], probe=probe, **nature)

    def produce(self, name: str, leader: str, base: int, *, stored: int, acks: int = -1) -> list[int]:
        """Produce the records of a name at `base`: invoked, appended with epoch `stored`, acknowledged."""
        values = self.records[name]
        for value in values:
            self.op(
                Source.CLIENT,
                "client-0",
                "produce",
                OpType.INVOKE,
                name=name,
                value=value,
                acks=acks,
                codec="none",
            )
        end = base + len(values)
        self.wait(1.2)
        self.broker(leader, "append", base=base, end=end, epoch=stored, role="leader")
        self.wait(2.5)
        return [
            self.op(
                Source.CLIENT,
                "client-0",
                "produce",
                OpType.OK,
                name=name,
                value=value,
                acks=acks,
                codec="none",
                offset=base + number,
            )
            for number, value in enumerate(values)
        ]

    def copy(self, follower: str, leader: str, base: int, end: int, epoch: int) -> None:
        """Write a follower's fetch and append."""
        self.fabric("fetch", follower, leader, **PLACE, offset=base)
        self.wait(0.8)
        self.broker(follower, "append", base=base, end=end, epoch=epoch, role="follower")

    def read_log(
        self,
        node: str,
        log: Sequence[tuple[int, Sequence[str]]],
        *,
        high_watermark: int,
        epochs: Sequence[tuple[int, int]] | None,
    ) -> list[int]:
        """Write the scan of a replica's log, batches as (epoch, values), and return the indexes of its lines."""
        found = [
            self.op(
                Source.LOG,
                node,
                "snapshot",
                OpType.OK,
                **PLACE,
                log_start_offset=0,
                log_end_offset=sum(len(values) for _, values in log),
                high_watermark=high_watermark,
                epochs=None if epochs is None else [list(e) for e in epochs],
                problems=[],
                batches=len(log),
            )
        ]
        base = 0
        for epoch, values in log:
            found.append(
                self.op(
                    Source.LOG,
                    node,
                    "batch",
                    OpType.OK,
                    **PLACE,
                    base=base,
                    last=base + len(values) - 1,
                    epoch=epoch,
                    magic=2,
                    crc=int(digest("".join(values))[:8], 16),
                    codec="none" if len(values) == 1 else "gzip",
                    position=71 * base,
                    segment="00000000000000000000.log",
                    records=[[base + n, digest(value), value] for n, value in enumerate(values)],
                )
            )
            base += len(values)
        return found

    def finish(self, records: Sequence[str]) -> None:
        """Write the end of a run: healed, the client's final read, done."""
        self.op(Source.RUNNER, "runner", "healed", OpType.OK)
        self.op(Source.CLIENT, "client-0", "read", OpType.INVOKE)
        self.wait(14)
        self.op(
            Source.CLIENT,
            "client-0",
            "read",
            OpType.OK,
            records=[[offset, value] for offset, value in enumerate(records)],
            high_watermark=len(records),
        )
        self.op(Source.RUNNER, "runner", "done")


class _Step:
    def __init__(self, recorder: Recorder, value: Mapping[str, Any]) -> None:
        self._recorder, self._value = recorder, value

    def __enter__(self) -> None:
        self._recorder.op(Source.RUNNER, "runner", "step", OpType.INVOKE, **self._value)

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> bool:
        if error is None:
            self._recorder.op(Source.RUNNER, "runner", "step", OpType.OK, **self._value)
            self._recorder.wait(4)
            return False
        self._recorder.op(Source.RUNNER, "runner", "step", OpType.FAIL, **self._value, error=str(error))
        return isinstance(error, StepFailedError)


class StepFailedError(Exception):
    """A step of a sample failed; the sample goes on to its end."""

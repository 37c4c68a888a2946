"""Changes to a real run's history that leave it whole: indexes, batch counts and log ends follow the change."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Final, Self

from harness.logs.record import sent_digest
from harness.model import Op, Source

RUNS: Final = Path(__file__).parents[1] / "runs"

Line = dict[str, Any]


class Edit:
    """
    One run's history under change. Lines are plain JSON objects with today's names; `ops` numbers them again.

    Args:
        run: the name of a file in tests/checkers/runs.
    """

    def __init__(self, run: str) -> None:
        text = (RUNS / f"{run}.jsonl").read_text(encoding="utf-8")
        self.lines: list[Line] = [json.loads(Op.from_json(line).to_json()) for line in text.splitlines()]

    @property
    def ops(self) -> list[Op]:
        """The changed history."""
        return [Op.from_json(json.dumps({**line, "index": index})) for index, line in enumerate(self.lines)]

    # --- finding ---------------------------------------------------------------------------------------------
    def all(
        self, source: Source | str, f: str, process: str | None = None, type: str | None = None, **value: Any
    ) -> list[Line]:
        """Return every line with that source, f, process, type and those keys of its value, in order."""
        return [
            line
            for line in self.lines
            if (line["source"], line["f"]) == (str(source), f)
            and process in (None, line["process"])
            and type in (None, line["type"])
            and all(line["value"].get(key) == item for key, item in value.items())
        ]

    def find(
        self,
        source: Source | str,
        f: str,
        process: str | None = None,
        type: str | None = None,
        nth: int = 0,
        **value: Any,
    ) -> Line:
        """Return the nth of those lines; -1 is the last."""
        found = self.all(source, f, process, type, **value)
        assert found, f"the run has no line {source} {f} {process or ''} {value}"
        return found[nth]

    def at(self, line: Line) -> int:
        """Return the place of a line."""
        return next(place for place, each in enumerate(self.lines) if each is line)

    def node_id(self, node: str) -> int:
        """Return a node's broker id."""
        return int(self.lines[0]["value"]["nodes"][node])

    # --- changing --------------------------------------------------------------------------------------------
    def change(self, line: Line, **value: Any) -> Self:
        """Set keys of the line's value."""
        line["value"] |= value
        return self

    def drop(self, *lines: Line) -> Self:
        """Remove lines."""
        self.lines = [each for each in self.lines if not any(each is line for line in lines)]
        return self

    def insert(
        self,
        anchor: Line,
        source: Source | str,
        f: str,
        process: str,
        type: str = "info",
        *,
        before: bool = False,
        **value: Any,
    ) -> Line:
        """Insert a new line after (or before) the anchor, at its time; return the new line."""
        line = {
            "index": 0,
            "time_ns": anchor["time_ns"],
            "source": str(source),
            "process": process,
            "type": type,
            "f": f,
            "value": value,
        }
        self.lines.insert(self.at(anchor) + (not before), line)
        return line

    def again(self, line: Line, *, after: Line | None = None, **value: Any) -> Line:
        """Insert a copy of the line, with other keys of its value, after itself or another line; return it."""
        twin = copy.deepcopy(line)
        twin["value"] |= value
        anchor = after or line
        twin["time_ns"] = anchor["time_ns"]
        self.lines.insert(self.at(anchor) + 1, twin)
        return twin

    def move(self, line: Line, *, after: Line) -> Self:
        """Move a line behind another, at its time."""
        self.lines = [each for each in self.lines if each is not line]
        line["time_ns"] = after["time_ns"]
        self.lines.insert(self.at(after) + 1, line)
        return self

    def event(self, after: Line, node: str, f: str, **value: Any) -> Line:
        """Insert an event of a broker about the run's partition."""
        setup = self.lines[0]["value"]
        return self.insert(
            after, Source.BROKER, f, node, topic=setup["topic"], partition=setup["partition"], **value
        )

    def append(self, after: Line, node: str, base: int, end: int, epoch: int) -> Line:
        """Insert a follower's append."""
        return self.event(after, node, "append", base=base, end=end, epoch=epoch, role="follower")

    def fetch(self, after: Line, follower: str, leader: str, offset: int) -> Line:
        """Insert a follower's fetch, as the fabric sees it."""
        setup = self.lines[0]["value"]
        place = {"topic": setup["topic"], "partition": setup["partition"]}
        return self.insert(
            after, Source.FABRIC, "fetch", "fabric", link=[follower, leader], **place, offset=offset
        )

    def fault(self, after: Line, name: str, *nodes: str, **value: Any) -> Line:
        """Insert a fault that bit, with the step that asked for it; return its ok."""
        step = {"line": 0, "text": f"{name} {' '.join(nodes)}", "narrative": ""}
        value = {"effect": "none", "band": "mark"} | value
        first = self.insert(after, Source.RUNNER, "step", "runner", "invoke", **step)
        asked = self.insert(first, Source.NEMESIS, name, "nemesis", "invoke", nodes=list(nodes), **value)
        bit = self.insert(asked, Source.NEMESIS, name, "nemesis", "ok", nodes=list(nodes), **value, probe="seen")
        self.insert(bit, Source.RUNNER, "step", "runner", "ok", **step)
        return bit

    def restart(self, after: Line, node: str, *, down: str = "kill", recovered: int, epochs: Any = ()) -> Line:
        """Insert a kill (or `power-loss`) and a restart of a node that recovers a log of this end; return it."""
        effect = "power-lost" if down == "power-loss" else "down"
        known = [
            line["value"]["to"]
            for line in self.all(Source.BROKER, "high-watermark", node)
            if self.at(line) < self.at(after)
        ]
        away = self.fault(after, down, node, effect=effect, band="down")
        back = self.fault(self.lines[self.at(away) + 1], "restart", node, heals=["down", "power-lost"])
        asked = self.lines[self.at(back) - 1]
        protocol = self.lines[0]["value"]["protocol"]
        started = self.insert(
            asked, Source.BROKER, "started", node, id=self.node_id(node), pid=1, protocol=protocol
        )
        return self.event(
            started,
            node,
            "recovered",
            log_end_offset=recovered,
            clean=False,
            cut_bytes=0,
            reason="clean",
            epochs=[list(entry) for entry in epochs],
            high_watermark=min(recovered, known[-1] if known else 0),
        )

    def loses_power(self, node: str) -> Self:
        """Make a kill of the node a power loss."""
        for line in (line for line in self.lines if line["f"] == "kill" and line["value"]["nodes"] == [node]):
            line["f"], line["value"]["effect"] = "power-loss", "power-lost"
        return self

    def renumber(self, since: Line, by: int) -> Self:
        """Raise the version of every state and ISR event from that line on."""
        for line in self.lines[self.at(since) :]:
            if line["f"] in ("state", "isr"):
                line["value"]["version"] += by
        return self

    def step(self, text: str) -> Line:
        """Return the end of a step."""
        return self.find(Source.RUNNER, "step", type="ok", text=text)

    def produces(self, name: str) -> list[Line]:
        """Return the lines of the produces of a group of records."""
        return self.all(Source.CLIENT, "produce", name=name)

    # --- final logs ------------------------------------------------------------------------------------------
    def snapshot(self, node: str) -> Line:
        """Return the node's last snapshot."""
        return self.find(Source.LOG, "snapshot", node, nth=-1)

    def batches(self, node: str) -> list[Line]:
        """Return the batches of the node's final log."""
        start = self.at(self.snapshot(node))
        return [line for line in self.all(Source.LOG, "batch", node) if self.at(line) > start]

    def batch_at(self, node: str, offset: int) -> Line:
        """Return the batch of the node's final log that has the offset."""
        return next(b for b in self.batches(node) if b["value"]["base"] <= offset <= b["value"]["last"])

    def drop_batch(self, node: str, offset: int, *, cut: bool = False) -> Self:
        """Remove the batch with that offset from the node's final log; if `cut`, all behind it too."""
        gone = [b for b in self.batches(node) if b["value"]["base"] <= offset <= b["value"]["last"]]
        if cut:
            gone += [b for b in self.batches(node) if b["value"]["base"] > offset]
        self.drop(*gone)
        return self._recount(node)

    def put_batch(self, node: str, batch: Line, **value: Any) -> Line:
        """Append a copy of a batch, with other keys, to the node's final log; return it."""
        twin = self.again(batch, after=(self.batches(node) or [self.snapshot(node)])[-1], **value)
        twin["process"] = node
        self._recount(node)
        return twin

    def rewrite(self, node: str, offset: int, text: str, to: str | None = None) -> Self:
        """
        Change the value of the record at the offset, with its digest (of `to` if given), in the node's log.

        The digest is that of a record without key, headers and timestamp, as the raw client sends it.
        """
        for record in self.batch_at(node, offset)["value"]["records"]:
            if record[0] == offset:
                record[1], record[2] = sent_digest(to or text), text
        return self

    def redigest(self, offset: int, digest: str, *nodes: str) -> Self:
        """Change the digest alone of the record at the offset, in these nodes' logs; in all without nodes."""
        for node in nodes or self.lines[0]["value"]["replicas"]:
            for record in self.batch_at(node, offset)["value"]["records"]:
                if record[0] == offset:
                    record[1] = digest
        return self

    def put_everywhere(self, offset: int, *records: tuple[int, str, str | None], **value: Any) -> Self:
        """
        Append a copy of the batch with that offset to every final log.

        Args:
            records: (offset, digest, value) of its records; those of the batch, moved to the log's end, if none.
            value: other keys of the batch's value.
        """
        for node in self.lines[0]["value"]["replicas"]:
            batch = self.batch_at(node, offset)
            end = self.snapshot(node)["value"]["log_end_offset"]
            own = batch["value"]["records"]
            put = [list(each) for each in records] or [[end + at, *each[1:]] for at, each in enumerate(own)]
            place = {"base": put[0][0], "last": put[-1][0], "records": put}
            self.put_batch(node, batch, **{**place, **value})
        return self

    def tell_digests(self) -> Self:
        """Let every invoke of a produce tell the digest that the final logs have for its value, as clients do."""
        known = {
            value: digest
            for line in self.all(Source.LOG, "batch")
            for _, digest, value in line["value"]["records"]
        }
        for line in self.all(Source.CLIENT, "produce", type="invoke"):
            if line["value"]["value"] in known:
                line["value"]["digest"] = known[line["value"]["value"]]
        return self

    def _recount(self, node: str) -> Self:
        batches, snapshot = self.batches(node), self.snapshot(node)
        end = max((b["value"]["last"] + 1 for b in batches), default=snapshot["value"]["log_start_offset"])
        return self.change(snapshot, batches=len(batches), log_end_offset=end)

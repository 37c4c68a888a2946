"""
What a scenario produces: awaited, refused, or under way while the scenario goes on.

    produce NAME acks=0|1|all [singly] [codec=gzip|...] [via A] [for=1000ms] [refused | meanwhile]

`via A` sends to A, whoever leads; `refused` says that no record may be acknowledged within the time of `for`;
`meanwhile` does not wait: `await acked NAME` does, and the end of the run waits for every outcome.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

from harness.client import Client, Underway
from harness.cluster import PARTITION, TOPIC, Cluster
from harness.marks import Marks
from harness.model import PreconditionError, UsageError

_ACKS: Final = {"0": 0, "1": 1, "all": -1}
_WAIT: Final = re.compile(r"(\d+)ms")


class Produces:
    """The produces of one run."""

    def __init__(self, cluster: Cluster, client: Client, marks: Marks) -> None:
        self._cluster = cluster
        self._client = client
        self._marks = marks
        self._underway: dict[str, Underway] = {}

    def act(self, name: str, options: list[str]) -> None:
        """Take a produce step."""
        text = f"produce {name} {' '.join(options)}"
        chosen = _options(text, options)
        refused, meanwhile = chosen.pop("refused", False), chosen.pop("meanwhile", False)
        if "via" in chosen:
            chosen["via"] = self._cluster.address_of(chosen["via"])
        values = self._marks.values(name)
        if meanwhile:
            leader = self._cluster.leader()
            self._marks.expected(name, max(0, self._cluster.log_end(leader)) if leader else 0)
            self._underway[name] = self._client.begin_produce(TOPIC, PARTITION, name, values, **chosen)
            return
        try:
            offsets = self._client.produce(TOPIC, PARTITION, name, values, **chosen)
        except PreconditionError:
            if refused:
                return
            raise
        if refused:
            raise PreconditionError(f"{text}: acknowledged at {offsets}; expected no acknowledgement")
        self._marks.acknowledged(name, offsets)

    def acked(self, name: str) -> bool:
        """Whether every record of a group that is under way was acknowledged; raises once one surely is not."""
        if name not in self._underway:
            raise UsageError(f"acked {name}: not produced meanwhile; expected one of {sorted(self._underway)}")
        if not self._underway[name].done:
            return False
        self._marks.acknowledged(name, self._underway[name].result())
        return True

    def end(self) -> None:
        """Wait until whatever is under way has its outcome, which the history then holds."""
        with suppress(PreconditionError):  # what was not acknowledged is in the history too
            self._cluster.await_(self._ended, lambda: f"the outcome of {', '.join(self._underway)}")
        self._underway.clear()

    def _ended(self) -> bool:
        return all(underway.done for underway in self._underway.values())


def _options(text: str, options: list[str]) -> dict[str, Any]:
    """Read a produce's options into what a client takes; UsageError with what was expected."""
    found: dict[str, Any] = {}
    words = list(options)
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        wait = _WAIT.fullmatch(value)
        if name == "acks" and value in _ACKS:
            found["acks"] = _ACKS[value]
        elif name == "codec" and value:
            found["codec"] = value
        elif name == "for" and wait:
            found["timeout_s"] = int(wait[1]) / 1000
        elif word == "singly":
            found["singly"] = True
        elif word in ("refused", "meanwhile"):
            found[word] = True
        elif word == "via" and words:
            found["via"] = words.pop(0)
        else:
            raise UsageError(
                f"{text}: {word!r}; expected acks=0|1|all, singly, codec=NAME, via NODE, for=1000ms, "
                "refused or meanwhile"
            )
    if "acks" not in found:
        raise UsageError(f"{text}: no acks; expected acks=0, acks=1 or acks=all")
    if "refused" in found and ("singly" in found or found["acks"] == 0):
        raise UsageError(f"{text}: refused, singly or without acks; expected one batch that waits for its answer")
    return found

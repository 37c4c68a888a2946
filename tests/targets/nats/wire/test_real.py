"""Frames of real servers are read as they were meant, in whatever portions they come."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness.fabric.splitter import Part, Piece, Splitter
from harness.target.wire import Direction, Message, Reading, words_of
from targets.nats.wire.wire import LINKS, WIRE
from tests.events.as_recorded import as_recorded

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("*.jsonl"))


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def frame_of(row: dict[str, Any]) -> bytes:
    return bytes(row["line"].encode() + bytes.fromhex(row["payload"]))


def words(message: Message) -> str:
    """Return what a frame says, as the files have it."""
    seen = message.seen
    offsets = "".join(f" {topic}@{offset}" for topic, offset in seen.offsets)
    events = "".join(f", {f} {value['offset']}" for f, value in map(as_recorded, message.events))
    return f"{seen.api} {seen.direction.value} {'->'.join(seen.link)}{offsets}{events}{message.error}"


class Routes:
    """The readings of one run's routes."""

    def __init__(self) -> None:
        self._hearing = WIRE.hear({1: "n1", 2: "n2", 3: "n3"})
        self._readings: dict[tuple[str, ...], Reading] = {}

    def of(self, row: dict[str, Any]) -> Reading:
        link = (row["link"][0], row["link"][1])
        if link not in self._readings:
            found = self._hearing.reading(LINKS[0], link)
            assert found is not None
            self._readings[link] = found
        return self._readings[link]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_real_frames_say_what_they_were_seen_to_say(file: Path) -> None:
    routes = Routes()
    for row in rows(file):
        frame, direction = frame_of(row), Direction(row["direction"])
        assert len(frame) == routes.of(row).size(frame, 0, direction)
        message = routes.of(row).read(frame, direction)
        assert row["said"] == words(message), row["line"]
        assert message.seen.api in words_of(WIRE)


@pytest.mark.parametrize("portion", [1, 2, 7, 100, 0])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_real_frames_are_split_in_any_portions(file: Path, portion: int) -> None:
    frames = [frame_of(row) for row in rows(file)]
    reading, random = Routes().of(rows(file)[0]), Random(file.stem)
    splitter = Splitter(lambda data, offset: reading.size(data, offset, Direction.REQUEST))
    pieces: list[Piece] = []
    stream, at = b"".join(frames), 0
    while at < len(stream):
        size = portion or random.randint(1, 300)
        pieces += splitter.feed(stream[at : at + size])
        at += size
    assert [(Part.HEAD, frame) for frame in frames] == pieces
    assert not splitter.opaque


def test_files_have_each_word_but_those_that_only_faults_bring() -> None:
    said = {row["said"].split()[0] for file in FILES for row in rows(file)}
    assert {"fetch", "Vote", "MetaVote", "MetaAppendEntry", "OtherVote", "OtherAppendEntry"} <= said
    assert {"Proposal", "RemovePeer"} == {"fetch", *WIRE.messages} - said

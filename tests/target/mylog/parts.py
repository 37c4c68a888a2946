"""The wire of mylog, its logs, and a client."""

import json
import os

from harness.events import Fetch
from harness.logs.record import Record
from harness.logs.stream import RecordsReading
from harness.target.log_client import AtNode, Found, Refused
from harness.target.wire import Between, Direction, LinkKind, Message, NotFramedError, Seen, Sender, Stands, Word

from .shared import ask


class LogClient(AtNode):
    def produce(self, value):
        return self.answer({"produce": value.decode()})["offset"]

    def read(self, first):
        lines = self.answer({"read": first})["lines"]
        return [Found(offset, line[:-1].split(" ", 1)[1].encode()) for offset, line in enumerate(lines, first)]

    def answer(self, question):
        answer = ask(tuple(self.address.rsplit(":", 1)), question, self.patience_s)
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer


class Logs:
    expected = "a file `log`, one record a line"

    def partitions(self, node):
        return [("log", 0)] if "log" in {entry.name for entry in node.folder.entries()} else []

    def reading(self, node, topic, partition):
        return RecordsReading(topic, partition, self.records(node.folder), file="log")

    def records(self, folder):
        with os.fdopen(folder.open("log"), "rb") as file:
            for offset, line in enumerate(file):
                epoch, _, value = line.removesuffix(b"\n").partition(b" ")
                if line.endswith(b"\n"):  # else the power went while it was written
                    yield Record(offset=offset, epoch=int(epoch), value=value)


class Wire:
    """A line of JSON each way, at an address for each pair of nodes."""

    links, messages = (LinkKind(name="copy", between=Between.NODES, sender=Sender.PAIR),), ()

    def stands(self, rules):
        return {word: Stands(api=Word.FETCH, own="copy") for word in (Word.FETCH, Word.QUESTION)}

    def hear(self, nodes):
        return self

    def reading(self, kind, link):
        return Reading(link)


class Reading:
    def __init__(self, link):
        self.link, self.offset = link, 0

    def size(self, buffer, offset, direction):
        if buffer[offset : offset + 1] != b"{":
            raise NotFramedError(f"{buffer[offset : offset + 1]!r}; expected a JSON object")
        return max(0, buffer.find(b"\n", offset) + 1 - offset)

    def read(self, frame, direction):
        asks = direction is Direction.REQUEST  # the answer is about the same offset
        self.offset = json.loads(frame)["copy"] if asks else self.offset
        seen = Seen(link=self.link, api=Word.FETCH, direction=direction, offsets=(("log", self.offset),))
        fetch = Fetch(link=self.link, topic="log", partition=0, offset=self.offset)
        return Message(seen=seen, events=(fetch,) if asks else ())

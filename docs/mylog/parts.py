"""What is read of mylog: its connections, its logs, and what a client is told."""

import json

from harness.target.log_client import AtNode, Found, Refused
from harness.target.plain_logs import PlainLogs
from harness.target.plain_wire import PlainWire
from harness.target.wire import Word

from .shared import ask


class Wire(PlainWire):
    words = {Word.FETCH: "copy"}

    def asks(self, question):
        return Word.FETCH, [("log", 0, json.loads(question)["copy"])]


class Logs(PlainLogs):
    def record(self, line):
        epoch, value = line.split(b" ", 1)
        return int(epoch), value


class Client(AtNode):
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

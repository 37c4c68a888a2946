"""mylog, one log that three nodes keep, as a target."""

import json
import re
import time
from pathlib import Path

from harness.ability import Ability
from harness.launch import Launch
from harness.metadata import Followed
from harness.target.log_client import clients_of
from harness.target.metadata import Look, PartitionTruth
from harness.target.operator import Operator, requests_of
from harness.target.plain import PlainTarget
from harness.target.target import Printed
from harness.target.traits import Promise, Traits

from .parts import LogClient, Logs, Wire
from .shared import change, leave, read


class Asked(Operator):
    def __init__(self, file):
        self.file = file

    def expire(self, name):
        change(self.file, leave, name)
        return f"{name} is no member"


class MyLog(PlainTarget):
    name = "mylog"
    versions = {"1": {"early": "no"}, "1-early": {"early": "yes"}}
    abilities = requests_of(Asked) | {Ability.MEMBERS}
    clients, logs, wire = clients_of(LogClient), Logs(), Wire()

    def traits(self, protocol, changes):
        return Traits(metadata="the truth", promise=Promise.DISK)

    def launch(self, spec, protocol, rules):
        place = spec.place
        config = {
            "name": spec.name,
            "folder": place.data_dir,
            "truth": str(spec.folder / "truth"),
            "early": rules["early"] == "yes",
            "listen": [(each.host, each.port) for each in (place.client, place.internal)],
            "nodes": {name: (address.host, address.port) for name, address in spec.peers.items()},
        }
        argv = (place.python, str(Path(__file__).parent / "server.py"), f"{place.conf_dir}/config.json")
        return Launch(argv=argv, files={"config.json": json.dumps(config)})

    def metadata(self, run):
        ended = []
        return Followed(run, looks(run.folder / "truth", ended), lambda: ended.append(True))

    def operator(self, run, metadata):
        return Asked(run.folder / "truth")

    def printed(self, line):
        found = re.search(r"cut to (\d+)$", line)
        return found and Printed(what="truncate", topic="log", partition=0, to=int(found[1]))


def looks(file, ended):
    """Yield what is true after each change."""
    shown = 0
    while not ended:
        for now in read(file)[shown:]:
            truth = {each: now[each] for each in ("leader", "epoch")}
            state = PartitionTruth(**truth, in_sync=tuple(now["in_sync"]))
            yield Look(states={("log", 0): state}, members=now["members"])
            shown += 1
        time.sleep(0.01)


TARGET = MyLog()

"""mylog, one log that three nodes keep, as a target."""

import json
import threading
from pathlib import Path

from harness.ability import Ability
from harness.launch import Launch
from harness.metadata import Followed
from harness.target.log_client import clients_of
from harness.target.metadata import Look, PartitionTruth
from harness.target.plain import PlainOperator, PlainTarget
from harness.target.traits import Promise, Traits

from .parts import Client, Logs, Wire
from .shared import change, lead, leave, read


class Asked(PlainOperator):
    def elect(self, topic, partition, name):
        change(self.run.folder / "truth", lead, name)
        return f"{name} is to lead"

    def expire(self, name):
        change(self.run.folder / "truth", leave, name)
        return f"{name} is no member"


class MyLog(PlainTarget):
    name = "mylog"
    versions = {"1": {"early": "no"}, "1-early": {"early": "yes"}}
    always = Traits(metadata="the truth", promise=Promise.DISK)
    asked, shows = Asked, {Ability.MEMBERS}
    clients, logs, wire = clients_of(Client), Logs(), Wire()
    patterns = {"truncate": r"cut to (?P<to>\d+)$"}

    def launch(self, spec, protocol, rules):
        config = {
            "name": spec.name,
            "folder": spec.place.data_dir,
            "truth": str(spec.folder / "truth"),
            "early": rules["early"] == "yes",
            "listen": [(each.host, each.port) for each in (spec.place.client, spec.place.internal)],
            "nodes": {name: (each.host, each.port) for name, each in spec.peers.items()},
        }
        argv = (spec.place.python, f"{Path(__file__).parent}/server.py", f"{spec.place.conf_dir}/config.json")
        return Launch(argv=argv, files={"config.json": json.dumps(config)})

    def metadata(self, run):
        return Followed(run, looks(run.folder / "truth"))


def looks(file):
    shown = 0  # so many changes; each is yielded once, and None while there is none
    while True:
        for now in read(file)[shown:]:
            state = PartitionTruth(leader=now["leader"], epoch=now["epoch"], in_sync=tuple(now["in_sync"]))
            yield Look(states={("log", 0): state}, members=now["members"])
            shown += 1
        yield None
        threading.Event().wait(0.01)


TARGET = MyLog()

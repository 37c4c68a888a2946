"""
Beside the brokers: the controller, one or three of them, which elects masters; and the name server.

Several controllers replicate by DLedger. With jRaft each listens on every address of the machine, whatever it is
told (JRaftController.java, 5.3.3 and 5.5.0): that is not played.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.launch import Address, Launch
from harness.model import FencepostError
from harness.target.services import LEADER, Others, Process, Service
from targets.rocketmq.asking import ASKED_S, leads
from targets.rocketmq.clients.connection import ask_once
from targets.rocketmq.config import CONTROLLER_MAIN, FILE_BYTES, NAMESRV_MAIN, host_of, launched
from targets.rocketmq.versions import release_of
from targets.rocketmq.wire.frames import Code

NAMESRV: Final = "namesrv"
CONTROLLER: Final = "controller"
_PEERS: Final = "fencepost"
_ACTIVE: Final = "active"
_FOLLOWER: Final = "follower"


def name_server(process: Process, peers: Sequence[Process], others: Others) -> Launch:
    """Return how a name server is started; it knows no other one."""
    del peers, others
    run, place = process.run, process.place
    assert run is not None, "a name server serves one run"
    conf = {"listenPort": place.client.port, "bindAddress": place.client.host}
    return launched(NAMESRV_MAIN, place, release_of(run.protocol), conf=conf, hosts=run.hosts, heap="96m")


def controller(process: Process, peers: Sequence[Process], others: Others) -> Launch:
    """Return how a controller is started; its peers reach each other past the links."""
    del others
    run, place = process.run, process.place
    assert run is not None, "a controller serves one run"
    named = (f"n{each.number}-{host_of(each.name)}:{each.place.client.port}" for each in peers)
    conf = {
        "controllerDLegerGroup": _PEERS,
        "controllerDLegerPeers": ";".join(named),
        "controllerDLegerSelfId": f"n{process.number}",
        "listenPort": place.client.port,
        "bindAddress": place.client.host,
        "controllerStorePath": f"{place.data_dir}/controller",
        "mappedFileSize": FILE_BYTES,
        "scanNotActiveBrokerInterval": 500,
    }
    hosts = {**run.hosts, **{each.name: each.place.client.host for each in peers}}
    return launched(CONTROLLER_MAIN, place, release_of(run.protocol), conf=conf, hosts=hosts, heap="128m")


def name_server_mode(address: Address) -> str:
    """Return "active" if a name server answers at the address, else ""."""
    try:
        ask_once(str(address), Code.GetNameServerConfig, {}, within_s=ASKED_S)
    except (FencepostError, OSError):
        return ""
    return _ACTIVE


def controller_mode(address: Address) -> str:
    """Return LEADER if a controller leads its peers, another word if it follows, "" if it serves nobody."""
    found = leads(str(address), within_s=ASKED_S)
    return "" if found is None else LEADER if found else _FOLLOWER


SERVICES: Final = (
    Service(name=NAMESRV, launch=name_server, mode=name_server_mode, listeners=1, linked=True),
    Service(
        name=CONTROLLER,
        launch=controller,
        mode=controller_mode,
        several=3,
        listeners=1,
        linked=True,
        holds_metadata=True,
    ),
)

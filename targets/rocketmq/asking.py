"""What a broker or a controller says of itself, asked by the remoting protocol as RocketMQ's own tools ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.launch import Address
from harness.model import FencepostError
from harness.target.log_client import Refused
from targets.rocketmq.clients.connection import AnswerError, ask_once, object_in
from targets.rocketmq.config import GROUP
from targets.rocketmq.wire.frames import Code

# A process that runs answers within milliseconds; one that is paused does not.
ASKED_S: Final = 0.8
_MASTER: Final = 0
# What reading an answer raises that is not as RocketMQ answers: it counts as none.
_NONSENSE: Final = (KeyError, ValueError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """
    What a broker says of its log.

    Attributes:
        leads: whether it acts as master.
        end: the offset of the byte after its commit log.
        starts: epoch -> the offset of its first byte.
    """

    leads: bool
    end: int
    starts: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A broker as the controller knows it: its address as it told it, and whether its heartbeats come."""

    number: int
    host: str
    alive: bool
    in_sync: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """
    What the controller holds true of the brokers.

    Attributes:
        master: the number of the broker that leads, None for none.
        set_epoch: the version of the SyncStateSet.
    """

    master: int | None
    epoch: int
    set_epoch: int
    replicas: Sequence[Replica]


def epochs_at(address: str, *, within_s: float = ASKED_S) -> Epochs | None:
    """Return what a broker says of its log, None if it does not answer."""
    try:
        return epochs_told(address, within_s=within_s)
    except (OSError, Refused):
        return None


def epochs_told(address: str, *, within_s: float) -> Epochs:
    """
    Return what a broker says of its log.

    Raises:
        Refused: nobody listens, so that it is down.
        OSError: it does not say so in time, or says something else.
    """
    try:
        found = object_in(ask_once(address, Code.GetEpochCache, {}, within_s=within_s).body)
        entries = found.get("epochList") or []
        return Epochs(
            leads=int(found["brokerId"]) == _MASTER,
            end=int(found["maxOffset"]),
            starts={int(each["epoch"]): int(each["startOffset"]) for each in entries},
        )
    except (AnswerError, *_NONSENSE) as error:
        raise OSError(f"{address}: {error!r:.200}; expected the epochs of a broker") from error


def leads(address: str, *, within_s: float = ASKED_S) -> bool | None:
    """Return whether a controller leads its peers, None if it does not answer."""
    try:
        answer = ask_once(address, Code.GetControllerMetadata, {}, within_s=within_s)
    except (OSError, FencepostError):
        return None
    if not answer.fields.get("controllerLeaderAddress"):
        return None
    return str(answer.fields.get("isLeader")).lower() == "true"


def replicas_at(controllers: Sequence[Address], *, within_s: float = ASKED_S) -> Replicas | None:
    """Return what the controller that leads holds true; None if none answers, or no broker is known to it."""
    for address in controllers:
        try:
            info = ask_once(str(address), Code.GetReplicaInfo, {"brokerName": GROUP}, within_s=within_s)
            body = f'["{GROUP}"]'.encode()
            data = ask_once(str(address), Code.GetSyncStateData, {}, body, within_s=within_s)
            return _replicas(info.fields, object_in(info.body), object_in(data.body))
        except (OSError, FencepostError, *_NONSENSE):
            continue
    return None


def _replicas(fields: Mapping[str, Any], of_set: Mapping[str, Any], data: Mapping[str, Any]) -> Replicas:
    table = data["replicasInfoTable"][GROUP]
    members = {int(each) for each in of_set.get("syncStateSet") or []}
    master = fields.get("masterBrokerId")
    return Replicas(
        master=None if master in (None, "", "-1") or not fields.get("masterAddress") else int(str(master)),
        epoch=int(fields["masterEpoch"]),
        set_epoch=int(of_set.get("syncStateSetEpoch") or 0),
        replicas=[
            Replica(
                number=int(each["brokerId"]),
                host=str(each["brokerAddress"]).rpartition(":")[0],
                alive=bool(each.get("alive")),
                in_sync=int(each["brokerId"]) in members,
            )
            for key in ("inSyncReplicas", "notInSyncReplicas")
            for each in table.get(key) or []
        ],
    )

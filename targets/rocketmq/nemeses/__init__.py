"""The faults that RocketMQ adds to the common ones: a broker is cut from one service, and reaches it again."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from targets.rocketmq.nemeses import cut_from_controller, cut_from_namesrv, metadata_back

FAULTS: Final[dict[str, Fault]] = {
    "cut-from-controller": cut_from_controller.FAULT,
    "cut-from-namesrv": cut_from_namesrv.FAULT,
    "metadata-back": metadata_back.FAULT,
}

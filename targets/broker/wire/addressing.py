"""
A request between brokers names its receiver in its header's client id: the one field that all versions have.

Kafka's requests name no receiver. Under each protocol a broker reads here whether it is meant
(targets/broker/core/admission.py).
Source:  Kafka's client ids of fetchers, `broker-1-fetcher-0`, by which links are recognised (harness/fabric).
"""

from __future__ import annotations

import re
from typing import Final

from targets.broker.core.events import ANYBODY

_ADDRESSED: Final = re.compile(r"broker-[0-9]{1,10}-.*-to-([0-9]{1,10})", re.DOTALL)


def client_id_of(sender: int, channel: str, receiver: int) -> str:
    """Return the client id of a broker's requests to another broker on one channel."""
    return f"broker-{sender}-{channel}-to-{receiver}"


def receiver_of(client_id: str | None) -> int:
    """Return the broker that a request's client id names, ANYBODY if it names none."""
    found = _ADDRESSED.fullmatch(client_id or "")
    return ANYBODY if found is None else int(found[1])

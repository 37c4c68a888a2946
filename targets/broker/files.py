"""How many files the process may open, and who gets them: logs first, then other brokers, then clients."""

from __future__ import annotations

import logging
import resource
from dataclasses import replace
from typing import Final

from targets.broker.limits import Limits

log = logging.getLogger("fencepost.broker")

# For checkpoints, ZooKeeper, other brokers, listeners, and what Python opens.
KEPT_BACK: Final = 100


def share_files(limits: Limits) -> Limits:
    """
    Raise this process's limit of open files as far as it may and is needed; return the limits that hold with it.

    Without enough files, a broker has fewer connections and opens logs more often, and never runs out.
    """
    wanted = limits.log_files_open_max + limits.internal_connections_max + limits.connections_max + KEPT_BACK
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    shared = limits if soft == resource.RLIM_INFINITY else _shared(limits, soft)
    if shared != limits:
        log.warning(
            "%d files may be open, of %d that the limits need: at most %d of logs, %d connections of brokers, "
            "%d of clients",
            *(soft, wanted, shared.log_files_open_max, shared.internal_connections_max, shared.connections_max),
        )
    return shared


def _shared(limits: Limits, files: int) -> Limits:
    """Give a quarter to the logs, an eighth to brokers, and what is left to clients."""
    logs = max(1, min(limits.log_files_open_max, files // 4))
    brokers = max(1, min(limits.internal_connections_max, files // 8))
    clients = max(1, min(limits.connections_max, files - KEPT_BACK - logs - brokers))
    return replace(limits, log_files_open_max=logs, internal_connections_max=brokers, connections_max=clients)

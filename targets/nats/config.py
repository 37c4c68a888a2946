"""
The configuration of a server, and its command line.

Servers dial each other at addresses of Fencepost, one for each ordered pair. By itself a server also dials the
addresses that others advertise, past these links, and several times for each pair: `advertise` names an address
where nobody listens, and `pool_size: -1` leaves one connection for each pair.

Source:  NATS's documentation, "Configuration"; route.go (gossip, pools).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Final

from harness.launch import Address
from harness.target.settings import Settings, refuse_policies
from targets.nats.clients.connection import SYSTEM
from targets.nats.versions import DEFAULT_SYNC, SYNC

FILE: Final = "nats.conf"
# What a small machine gives each of many servers.
MEMORY: Final = "200MiB"
_CLUSTER: Final = "fencepost"
# Nobody listens at the discard port of this machine's own loopback.
_NOWHERE: Final = "127.0.0.1:9"
_FILE_STORE: Final = "4G"
# A server has a tag for each set of nodes that it is one of, as far as there are not too many sets.
_TAGGED_NODES_MAX: Final = 6


def conf(
    name: str,
    *,
    listens: Address,
    routes: Address,
    peers: Mapping[str, Address],
    data_dir: str,
    settings: Settings,
    rules: Mapping[str, str],
) -> str:
    """
    Return a server's file.

    Args:
        listens: where it listens for clients.
        routes: where it listens for other servers; every link leads there.
        peers: other server -> where this one reaches it.

    Raises:
        UsageError: NATS has no such setting.
    """
    refuse_lacking(settings)
    sync = rules.get(SYNC, DEFAULT_SYNC)
    dialled = ", ".join(f"nats-route://{address}" for address in peers.values())
    tags = ", ".join(f'"{tag}"' for tag in tags_of(name, (name, *peers)))
    return f"""\
server_name: "{name}"
server_tags: [ {tags} ]
listen: "{listens}"
debug: true
logtime: true
max_payload: 1MB
accounts {{ $SYS {{ users: [ {{ user: {SYSTEM}, password: {SYSTEM} }} ] }} }}
jetstream {{
  store_dir: "{data_dir}"
  sync_interval: "{sync}"
  max_memory_store: 64M
  max_file_store: {_FILE_STORE}
}}
cluster {{
  name: {_CLUSTER}
  listen: "{routes}"
  pool_size: -1
  compression: off
  no_advertise: true
  advertise: "{_NOWHERE}"
  routes: [ {dialled} ]
}}
"""


def tag_of(names: Iterable[str]) -> str:
    """Return the tag that exactly these nodes have together."""
    return "on-" + "-".join(sorted(names))


def tags_of(name: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the tags of a node: one for each set of nodes that it is in, by which a stream is placed on a set."""
    others = sorted({*names} - {name})
    sizes = range(len(others) + 1) if len(others) < _TAGGED_NODES_MAX else (len(others),)
    for size in sizes:
        yield from (tag_of((name, *found)) for found in combinations(others, size))


def refuse_lacking(settings: Settings) -> None:
    """
    Raise UsageError for a setting for which streams have nothing.

    Some change nothing and are no error: a quorum is as large as it is, no member leaves it for its lag, blocks
    have a size of their own, and `sync_interval` says when what is flushed.
    """
    refuse_policies("NATS JetStream", settings)

"""
A protocol's name states two things, as a broker of Apache Kafka does: what its program can, and what it speaks.

`kip320` is a broker of that protocol. `kip320@kip101` is its program with inter.broker.protocol.version set back:
it writes batches, asks and answers as `kip101` does, so that a cluster can be upgraded one broker at a time in two
rounds, first the programs and then the version. What a release mended without a new message is in the program
whatever it speaks.
Source:  KIP-101, Compatibility, Deprecation, and Migration Plan, steps 1 and 2; Apache Kafka's upgrade notes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from targets.broker.core.rules import PROTOCOLS, FetchSessions, Rules

AT: Final = "@"
# The rules that other brokers notice: by a field of a message, by a format on disk, or by what is written into
# ZooKeeper.
SPOKEN: Final = (
    "epochs",
    "truncate_to",
    "fence_truncation_query",
    "fence_fetch",
    "fence_high_watermark",
    "fence_isr_join",
    "fence_broker_epoch",
    "topic_identity",
    "idempotence",
)


def spoken_by(name: str) -> str:
    """Return the protocol whose messages a broker uses with others: `kip101` for `kip320@kip101`."""
    program, _, version = name.partition(AT)
    return version or program


def protocol_rules(name: str) -> Rules:
    """
    Return the rules of a protocol, or of a newer program that speaks an older one.

    Raises:
        ValueError: there is no such protocol, or the program is older than what it is to speak.
    """
    program, at, version = name.partition(AT)
    ladder = list(PROTOCOLS)
    for each in (program, version) if at else (program,):
        if each not in PROTOCOLS:
            raise ValueError(f"protocol {name!r}: {each!r}; expected one of {', '.join(PROTOCOLS)}")
    own = PROTOCOLS[program]
    if not at:
        return own
    if ladder.index(version) > ladder.index(program):
        raise ValueError(
            f"protocol {name!r}: {program} cannot speak {version}; expected an older one after {AT!r}"
        )
    said = PROTOCOLS[version]
    sessions = FetchSessions.NONE if said.fetch_sessions is FetchSessions.NONE else own.fetch_sessions
    return replace(own, fetch_sessions=sessions, **{rule: getattr(said, rule) for rule in SPOKEN})

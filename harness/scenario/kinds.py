"""The kinds of words in a scenario's steps: a node, an end of a link, an API, a group of records, a number."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from harness import limits
from harness.cluster.aims import AIMS
from harness.numerals import above_zero, whole
from harness.scenario.forms import Choice, Perhaps
from harness.scenario.grammar import Kind, Names, one_of
from harness.scenario.offsets import Mark, Offset
from harness.scenario.words import END, MESSAGE, messages, present
from harness.target.wire import ANY, METADATA
from harness.workload.plan import CODEC_NAMES, Place

NONE: Final = "none"
_ACKS: Final = {"0": 0, "1": 1, "all": -1}
# A name of the target's; the target knows which there are.
_PROTOCOL: Final = re.compile(r"@?[a-z0-9][a-z0-9.@:-]*")
_MARK: Final = re.compile(r"(end|start)\((\w+)\)")


def _offset(word: str, names: Names) -> Offset:
    mark = _MARK.fullmatch(word)
    if mark is None:
        return whole(word, 0, limits.SCENARIO_OFFSET_MAX)
    if mark[2] not in names.groups:
        raise ValueError(word)
    return Mark(mark[1], mark[2])


def _place(word: str, names: Names) -> Place:
    return {str(place): place for place in names.places}[word]


def _record_offsets(names: Names) -> list[str]:
    return [f"{side}({group})" for group in names.groups for side in ("end", "start")]


def _protocol(word: str, _names: Names) -> str:
    if not _PROTOCOL.fullmatch(word):
        raise ValueError(word)
    return word


def _above_zero(unit: str, most: int) -> Callable[[str, Names], Decimal]:
    """Return a reader of numbers above 0, up to `most`; a Decimal keeps their text, so that 3.0 stays 3.0."""

    def read(word: str, _names: Names) -> Decimal:
        number = word.removesuffix(unit)
        if f"{number}{unit}" != word:
            raise ValueError(word)
        above_zero(number, most)
        return Decimal(number)

    return read


def _message(word: str, names: Names) -> str:
    word = word if word in names.messages else present(MESSAGE, word)
    if word not in messages():
        raise ValueError(word)
    return word


def _or_none(word: str, names: Names) -> str | None:
    return None if word == NONE else str(NODE.read(word, names))


def _shown_acks(acks: Any) -> str:
    return next(word for word, meant in _ACKS.items() if meant == acks)


def _link_ends(names: Names) -> tuple[str, ...]:
    return (*names.nodes, *names.services, METADATA, ANY)


NODE: Final = one_of("A", "a node", lambda names: names.nodes)
NODE_OR_AIM: Final = one_of("A", "a node or an aim", lambda names: (*names.nodes, *AIMS, *names.services))
SERVICE: Final = one_of("NAME", "a service of the head, or a process of one", lambda names: names.services)
NODE_OR_NONE: Final = Kind(
    sign=f"A|{NONE}",
    expected=lambda names: f"a node or {NONE}: one of {', '.join(names.nodes)}, {NONE}",
    read=_or_none,
    choices=lambda names: (*names.nodes, NONE),
    show=lambda value: value or NONE,
)
LINK_END: Final = one_of(
    "A", "an end of a link", lambda names: (*names.nodes, *names.services, METADATA, ANY), END
)
OTHER_END: Final = one_of(
    "B", "an end of a link", lambda names: (*names.nodes, *names.services, METADATA, ANY), END
)
API: Final = Kind(
    sign="MESSAGE",
    expected=lambda _: f"a message: one of {', '.join(messages())}",
    read=_message,
    choices=lambda _: messages(),
)
GROUP: Final = one_of("NAME", "a group of records of the head", lambda names: names.groups)
FAULT: Final = one_of("FAULT", "a fault", lambda names: names.faults)
PLACE: Final = Kind(
    sign="TOPIC-N",
    expected=lambda names: f"a further partition of the head: one of {', '.join(map(str, names.places))}",
    read=_place,
    choices=lambda names: [str(place) for place in names.places],
)
PROTOCOL: Final = Kind(
    sign="PROTOCOL",
    expected=lambda _: "a protocol: its name, kip320@kip101, @kip101, own, or a release such as kafka:1.1.1",
    read=_protocol,
)
CODEC: Final = one_of("|".join(CODEC_NAMES), "a codec", lambda _: CODEC_NAMES)
OFFSET: Final = Kind(
    sign="N",
    expected=lambda names: (
        f"an offset: a number up to {limits.SCENARIO_OFFSET_MAX}, or one of {', '.join(_record_offsets(names))}"
    ),
    read=_offset,
    choices=_record_offsets,
)
ACKS: Final = Kind(
    sign="0|1|all",
    expected=lambda _: "acks=0, acks=1 or acks=all",
    read=lambda word, _: _ACKS[word],
    choices=lambda _: _ACKS,
    show=_shown_acks,
)
SECONDS: Final = Kind(
    sign="SECONDS",
    expected=lambda _: f"seconds, a number above 0 such as 0.5, up to {limits.SCENARIO_TIME_S_MAX}",
    read=_above_zero("", limits.SCENARIO_TIME_S_MAX),
)
MILLISECONDS: Final = Kind(
    sign="1000ms",
    expected=lambda _: f"a time such as 12ms or 0.5ms, up to {1000 * limits.SCENARIO_TIME_S_MAX}ms",
    read=_above_zero("ms", 1000 * limits.SCENARIO_TIME_S_MAX),
    show=lambda value: f"{value}ms",
)
DIRECTION: Final = Choice("direction", {"answers": "answers", "requests": "requests"})
EITHER_DIRECTION: Final = Perhaps(DIRECTION)

"""
A scenario: a written-down schedule with the outcome expected under each protocol, read from a text file.

    title    A follower restarts with a lagging high watermark, and the leader dies
    source   KIP-101, Scenario 1
    nodes    B A replicas, C controller
    records  m1 1..4, m2 1..3
    settings min_isr=2 unclean_election=yes
    # Comment lines are the story; the report shows them above the step that they introduce.
    produce m1 acks=all
    await checkpoint A = end(m1)
    under kip380: await isr = B
    unless kip380, hw: require isr = A B
    expect hw: lost m2
    expect kip101, kip101-text: none
    expect kip320+fence_fetch=no: diverged m2 A B
    expect kafka:2.1.1@1.1: none

Records are drawn: `m2 1..3` from 1 to 3, `m3 m2+1..m2+3` from one more than m2 has; `m1 11` is 11. `end(m2)` is
the offset after the last record of m2. A line with `under` is a step of those protocols alone, one with `unless`
of all others; a mutant such as `kip320+fence_fetch=no` counts as its protocol too, and a release as the protocol
of ours to which it corresponds, as `kafka:2.1.1` and as `kafka`. Which words a step may begin with is the runner's
business (harness/runner.py); harness/settings.py tells which settings there are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from harness.effect import RENAMED_FAULTS
from harness.model import UsageError
from harness.settings import Settings, read_settings
from harness.variant import Variant

BROKER_ID_MAX: Final = 999
_BOUND: Final = re.compile(r"^(?:(?P<name>[a-z]\w*)\+)?(?P<number>\d+)$")
_RECORDS: Final = re.compile(r"^(?P<name>[a-z]\w*) (?P<low>\S+?)(?:\.\.(?P<high>\S+))?$")
_HEADS: Final = ("title", "source", "nodes", "records", "settings")
_NEEDED: Final = ("title", "source", "nodes", "records")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    One line of a scenario: its words, and the story told above it.

    Shapes:  text is the whole line. variants are those that it is for, or with `unless` those that it is not
             for; () when it is for all.
    """

    line: int
    text: str
    narrative: str
    variants: tuple[str, ...] = ()
    unless: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The line's words, without those that say for whom it is."""
        return tuple((self.text.partition(": ")[2] if self.variants else self.text).split())

    def is_for(self, names: Collection[str]) -> bool:
        """Whether it is a step of the variant that has these names."""
        return not self.variants or any(name in self.variants for name in names) != self.unless


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many records: from `low` to `high`, each more than those of `base` when that is named."""

    name: str
    low: int
    high: int
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """
    What is played, on whom, and what must come of it.

    Shapes:  replicas in the order of assignment (the first leads); nodes are all, in order of starting: the
             controller first. expectations maps a variant's text to what is expected of it.
    """

    name: str
    title: str
    sources: tuple[str, ...]
    replicas: tuple[str, ...]
    nodes: tuple[str, ...]
    records: tuple[Count, ...]
    steps: tuple[Step, ...]
    expectations: Mapping[str, str]
    settings: Settings = field(default_factory=Settings)

    def under(self, names: Collection[str]) -> Scenario:
        """Give what is played under a variant; a step without a story inherits that of one left out above it."""
        steps: list[Step] = []
        story = ""
        for step in self.steps:
            told = step.narrative or story
            if step.is_for(names):
                steps.append(replace(step, narrative=told))
            story = "" if step.is_for(names) else told
        return replace(self, steps=tuple(steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What chance decided for one run: broker ids and numbers of records."""

    seed: int
    ids: Mapping[str, int]
    counts: Mapping[str, int]


def draw(scenario: Scenario, seed: int) -> Draw:
    """Draw a run: the same seed and scenario give the same ids and numbers."""
    chance = random.Random(f"{scenario.name} {seed}")
    ids = dict(zip(scenario.nodes, chance.sample(range(1, BROKER_ID_MAX + 1), len(scenario.nodes)), strict=True))
    counts: dict[str, int] = {}
    for count in scenario.records:
        more = counts[count.base] if count.base else 0
        counts[count.name] = more + chance.randint(count.low, count.high)
    return Draw(seed=seed, ids=ids, counts=counts)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file; raise UsageError naming file, line and what was expected there."""
    return parse(path.stem, path.read_text(encoding="utf-8"), str(path))


def parse(name: str, text: str, where: str) -> Scenario:
    """Read a scenario's text; `where` names it in errors."""
    heads: dict[str, list[str]] = {}
    steps: list[Step] = []
    expectations: dict[str, str] = {}
    story: list[str] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith("#"):
            story.append(line.lstrip("# "))
            continue
        if not line:
            continue
        word, _, rest = line.partition(" ")
        if word in _HEADS:
            heads.setdefault(word, []).append(rest.strip())
        elif word == "expect":
            _expect(expectations, rest, f"{where}:{number}")
        else:
            steps.append(_step(number, line, " ".join(story), f"{where}:{number}"))
            story = []
    for head in _NEEDED:
        if head not in heads:
            raise UsageError(f"{where}: no line {head!r}; expected one")
    replicas, nodes = _nodes(heads["nodes"][0], where)
    return Scenario(
        name=name,
        title=heads["title"][0],
        sources=tuple(heads["source"]),
        replicas=replicas,
        nodes=nodes,
        records=_records(", ".join(heads["records"]), where),
        steps=tuple(steps),
        expectations=expectations,
        settings=read_settings(" ".join(heads.get("settings", ())), where),
    )


def _step(number: int, line: str, narrative: str, where: str) -> Step:
    word, _, rest = line.partition(" ")
    if word not in ("under", "unless"):
        return Step(line=number, text=_present(line), narrative=narrative)
    names, colon, act = rest.partition(": ")
    if not colon or not act.strip():
        raise UsageError(f"{where}: {line!r}; expected '{word} PROTOCOL[, PROTOCOL]: STEP'")
    variants = tuple(str(Variant.parse(name, where)) for name in names.split(","))
    text = f"{word} {names}: {_present(act)}"
    return Step(line=number, text=text, narrative=narrative, variants=variants, unless=word == "unless")


def _present(act: str) -> str:
    """Return what is to be done, with the name that its fault has now."""
    word, _, rest = act.partition(" ")
    return f"{RENAMED_FAULTS[word]} {rest}" if word in RENAMED_FAULTS else act


def _expect(expectations: dict[str, str], rest: str, where: str) -> None:
    protocols, colon, outcome = rest.partition(": ")
    if not colon or not outcome.strip():
        raise UsageError(f"{where}: expect {rest!r}; expected 'expect PROTOCOL[, PROTOCOL]: OUTCOME'")
    for text in protocols.split(","):
        variant = str(Variant.parse(text, where))
        if variant in expectations:
            raise UsageError(f"{where}: {variant} is expected to show {expectations[variant]!r} already")
        expectations[variant] = outcome.strip()


def _nodes(text: str, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    replicas: tuple[str, ...] = ()
    controller: tuple[str, ...] = ()
    for part in text.split(","):
        *names, role = part.split()
        if role == "replicas":
            replicas = tuple(names)
        elif role == "controller" and len(names) == 1:
            controller = tuple(names)
        else:
            raise UsageError(f"{where}: nodes {part.strip()!r}; expected 'A B replicas' or 'C controller'")
    if not replicas or not controller:
        raise UsageError(f"{where}: nodes {text!r}; expected replicas and one controller")
    others = tuple(name for name in replicas if name not in controller)
    return replicas, controller + others


def _records(text: str, where: str) -> tuple[Count, ...]:
    found: list[Count] = []
    for part in text.split(","):
        match = _RECORDS.match(part.strip())
        low, high = (
            (_BOUND.match(match[side] or match["low"]) for side in ("low", "high")) if match else (None, None)
        )
        if match is None or low is None or high is None or low["name"] != high["name"]:
            raise UsageError(f"{where}: records {part.strip()!r}; expected 'm1 1..4', 'm1 11' or 'm3 m2+1..m2+3'")
        base = low["name"] or ""
        if base and base not in {count.name for count in found}:
            raise UsageError(f"{where}: records {part.strip()!r}: {base!r} is not counted before it")
        found.append(Count(name=match["name"], low=int(low["number"]), high=int(high["number"]), base=base))
    return tuple(found)

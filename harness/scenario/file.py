"""
Scenarios: a written schedule with the outcome expected under each protocol, read from a text file.

    title    A follower restarts with a lagging high watermark, and the leader dies
    source   KIP-101, Scenario 1
    nodes    B A replicas, C controller
    records  m1 1..4, m2 1..3
    settings min_isr=2 unclean_election=yes
    partition orders-0 B A
    producer p1 log-0 orders-0 acks=all,1 every_ms=5..40
    consumer c1 orders-0 via=every seek=0.1
    churner n1 temp A B C partitions=2
    services quorum 3
    # Comment lines explain; the report shows them above the step that they introduce.
    produce m1 acks=all
    await checkpoint A = end(m1)
    under kip380: await isr = B
    unless kip380, hw: require isr = A B
    expect hw: lost m2
    expect kip101, kip101-text: none
    expect kip320+fence_fetch=no: diverged m2 A B
    expect kafka:2.1.1@1.1: none

The seed draws the numbers of records: `m2 1..3` is 1 to 3, `m3 m2+1..m2+3` is one to three more than m2 has, and
`m1 11` is 11. `end(m2)` is the offset after the last record of m2.

Steps are about the partition `log-0`. A run may have more: `partition` names one with its replicas, and a step may
name it, as `elect A of orders-0`. `producer` and `consumer` are clients that work while the steps are played, each
on the partitions that it names; a `churner` creates, deletes and creates again a topic of its own, with replicas
on the nodes that it names. harness/workload/plan.py has their options. In `nodes B A replicas, C controller,
D others` D is neither; without `C controller` the first replica starts first.

A line with `under` is a step of the named protocols alone; a line with `unless` is a step of all others. A mutant
such as `kip320+fence_fetch=no` also matches its protocol's name. A release of Kafka matches the name of the
protocol that it corresponds to, its own name (`kafka:2.1.1`) and `kafka`.

`services NAME` gives the run processes of its own of a service of the target, one or as many as it says, beside
the nodes: `kill quorum-1` hits one, `kill quorum` all of them, `kill service` any.

harness/scenario/steps.py has the steps, harness/target/settings.py the settings, expectation.py the words of an
expectation. The whole file is read and every word checked before a run starts.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from harness import limits
from harness.input_file import read_text
from harness.model import UsageError
from harness.scenario.expectation import check_expectation
from harness.scenario.grammar import Line, Names
from harness.scenario.heads import (
    Count,
    counts_of,
    further_of,
    nodes_of,
    services_of,
    settings_of,
    words_of,
)
from harness.scenario.lines import RawLine, lines_of
from harness.scenario.step_order import check_installed, check_order, check_records
from harness.scenario.steps import STEPS, Act, Inject, Install, Produce, Remove
from harness.scenario.variant import Variant, Variants
from harness.scenario.words import FAULT, present
from harness.target.settings import Settings
from harness.workload.plan import NO_CLIENTS, Clients, Place

BROKER_ID_MAX: Final = 999
# The partition that a scenario is about: nothing else names it.
TOPIC: Final = "log"
PARTITION: Final = 0
_HEADS: Final = (
    "title",
    "source",
    "nodes",
    "records",
    "settings",
    "partition",
    "producer",
    "consumer",
    "churner",
    "services",
)
_NEEDED: Final = ("title", "source", "nodes", "records")
_ONCE: Final = ("title", "nodes")
_CONDITIONAL: Final = ("under", "unless")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    One step of a scenario, with the comment above it.

    Attributes:
        narrative: the comment lines above the step, joined.
        variants: the variants that play the step, or with `unless` those that do not; () for all variants.
    """

    line: int
    act: Act
    narrative: str = ""
    variants: tuple[str, ...] = ()
    unless: bool = False
    _text: str = field(default="", init=False, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The whole line, with its `under` or `unless`; printed once."""
        if not self._text:
            word = "unless" if self.unless else "under"
            text = f"{word} {', '.join(self.variants)}: {self.act}" if self.variants else str(self.act)
            object.__setattr__(self, "_text", text)
        return self._text

    def is_for(self, names: Collection[str]) -> bool:
        """Return True if a variant that has these names plays the step."""
        return not self.variants or any(name in self.variants for name in names) != self.unless

    def excludes(self, other: Step) -> bool:
        """Return True if no variant plays both steps, as far as their names show."""
        if not (self.variants and other.variants) or (self.unless and other.unless):
            return False
        if not (self.unless or other.unless):
            return not set(self.variants) & set(other.variants)
        only, left_out = (other, self) if self.unless else (self, other)
        # A mutant has its protocol's name too.
        return all({name, name.partition("+")[0]} & set(left_out.variants) for name in only.variants)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """
    A scenario as read from its file.

    Attributes:
        replicas: in the order of assignment; the first one leads.
        nodes: all in the order of starting; the first is to be controller, if `names_controller`.
        expectations: variant's text -> the outcome that is expected under it.
        topic, partition: the one that its steps are about, unless they name another.
        further: the other partitions of the cluster, each with its replicas; the first of them leads.
        clients: the workload's clients, which work while the steps are played.
        services: those that the run must have for itself, each with the number of its processes.
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
    topic: str = TOPIC
    partition: int = PARTITION
    further: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    clients: Clients = NO_CLIENTS
    services: Mapping[str, int] = field(default_factory=dict)
    names_controller: bool = True

    @property
    def service_words(self) -> tuple[str, ...]:
        """The names of its own services, and of their processes."""
        return words_of(self.services)

    @property
    def places(self) -> Mapping[Place, tuple[str, ...]]:
        """All partitions with their replicas, the main one first."""
        return {Place(self.topic, self.partition): self.replicas, **self.further}

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults that its steps name, each once."""
        return tuple(dict.fromkeys(step.act.fault for step in self.steps if isinstance(step.act, Inject)))

    @property
    def upgrades(self) -> bool:
        """Whether a step has a node follow another protocol."""
        return bool(self.installed)

    @property
    def installed(self) -> frozenset[str]:
        """The protocols that steps install, as the steps name them."""
        return frozenset(step.act.protocol for step in self.steps if isinstance(step.act, Install))

    @property
    def removed(self) -> tuple[Place, ...]:
        """The partitions that a step removes: the one that it names, and those above it."""
        lowest = [step.act.place for step in self.steps if isinstance(step.act, Remove)]
        return tuple(
            place
            for place in self.further
            if any(place.topic == each.topic and place.partition >= each.partition for each in lowest)
        )

    @property
    def stores(self) -> tuple[str, ...]:
        """The nodes that hold a replica of any partition, in the order of starting."""
        held = {name for replicas in self.places.values() for name in replicas}
        held.update(name for churner in self.clients.churners for name in churner.nodes)
        return tuple(name for name in self.nodes if name in held)

    def under(self, names: Collection[str]) -> Scenario:
        """
        Return the scenario with only the steps that a variant plays.

        A step without a comment inherits the comment of the step above it, if that step is left out.
        """
        steps: list[Step] = []
        comment = ""
        for step in self.steps:
            narrative = step.narrative or comment
            if step.is_for(names):
                steps.append(step if step.narrative == narrative else replace(step, narrative=narrative))
            comment = "" if step.is_for(names) else narrative
        return replace(self, steps=tuple(steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What the seed decides for one run: broker ids and numbers of records."""

    seed: int
    ids: Mapping[str, int]
    counts: Mapping[str, int]


def draw(scenario: Scenario, seed: int) -> Draw:
    """Draw the ids and numbers of a run; the same seed and scenario always draw the same ones."""
    chance = random.Random(f"{scenario.name} {seed}")
    ids = dict(zip(scenario.nodes, chance.sample(range(1, BROKER_ID_MAX + 1), len(scenario.nodes)), strict=True))
    counts: dict[str, int] = {}
    for count in scenario.records:
        more = counts[count.base] if count.base else 0
        counts[count.name] = more + chance.randint(count.low, count.high)
    return Draw(seed=seed, ids=ids, counts=counts)


def read_scenario(path: Path, faults: Collection[str], known: Variants | None = None) -> Scenario:
    """Read a scenario file; see `parse`."""
    text = read_text(path, "a scenario file", limits.SCENARIO_BYTES_MAX)
    return parse(path.stem, text, str(path), faults, known)


def parse(name: str, text: str, where: str, faults: Collection[str], known: Variants | None = None) -> Scenario:
    """
    Read a scenario's text.

    Args:
        where: the name of the text in errors, such as a file's path.
        faults: the names of the faults that steps may inject.
        known: the variants that `under`, `unless` and `expect` may name; None skips this check.

    Raises:
        UsageError: a line is wrong; the message names file and line, what was found, what was expected, and the
            nearest word.
    """
    lines = list(lines_of(text, where))
    heads = _heads(lines, where)
    replicas, nodes, names_controller = nodes_of(*heads["nodes"][0])
    records = tuple(counts_of(heads["records"]))
    settings = settings_of(heads.get("settings", ()), replicas, [count.name for count in records])
    further, clients = further_of(heads, nodes, Place(TOPIC, PARTITION))
    services = services_of(heads.get("services", ()))
    names = Names(
        nodes=nodes,
        groups=[count.name for count in records],
        faults=faults,
        places=tuple(further),
        services=words_of(services),
        messages=known.messages if known is not None else (),
    )
    steps, expectations = _body(lines, names, known)
    places = [(f"{where}:{step.line}: {step.text!r}", step.act) for step in steps]
    check_order(places)
    check_records(places, expectations)
    check_installed(places, known)
    check_sent_once(steps, where)
    return Scenario(
        name=name,
        title=heads["title"][0][1],
        sources=tuple(source for _, source in heads["source"]),
        replicas=replicas,
        nodes=nodes,
        names_controller=names_controller,
        records=records,
        steps=steps,
        expectations={variant: outcome for variant, (_, outcome) in expectations.items()},
        settings=settings,
        further=further,
        clients=clients,
        services=services,
    )


def _heads(lines: Sequence[RawLine], where: str) -> dict[str, list[tuple[str, str]]]:
    """Return, for each word of the head, the rest of its lines, each with its place."""
    heads: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        if line.word in _HEADS:
            if line.word in heads and line.word in _ONCE:
                raise UsageError(f"{line.where}: {line.text!r}: a second {line.word!r}; expected one")
            if not line.rest:
                raise UsageError(f"{line.where}: {line.text!r} ends too soon; expected what it is")
            heads.setdefault(line.word, []).append((line.where, line.rest))
    for head in _NEEDED:
        if head not in heads:
            firsts = [line.word for line in lines if line.text and line.word not in (*_HEADS, "#")]
            near = get_close_matches(head, firsts, n=1)
            place = next((line.where for line in lines if near and line.word == near[0]), f"{where}:1")
            meant = f"; found {near[0]!r}. Did you mean {head!r}?" if near else "; expected one"
            raise UsageError(f"{place}: no line {head!r}{meant}")
    return heads


def _body(
    lines: Sequence[RawLine], names: Names, known: Variants | None
) -> tuple[tuple[Step, ...], dict[str, tuple[str, str]]]:
    """Read the lines below the head: steps with the comments above them; variant -> (place, expectation)."""
    steps: list[Step] = []
    expectations: dict[str, tuple[str, str]] = {}
    comment: list[str] = []
    for line in lines:
        if line.text.startswith("#"):
            comment.append(line.text.lstrip("# "))
        elif line.word == "expect":
            _expect(expectations, line, names, known)
        elif line.text and line.word not in _HEADS:
            steps.append(_step(line, " ".join(comment), names, known))
            comment = []
    return tuple(steps), expectations


def _step(line: RawLine, narrative: str, names: Names, known: Variants | None) -> Step:
    text = line.text
    variants: tuple[str, ...] = ()
    if line.word in _CONDITIONAL:
        named, colon, text = line.rest.partition(": ")
        if not colon or not text.strip():
            raise UsageError(f"{line.where}: {line.text!r}; expected '{line.word} PROTOCOL[, PROTOCOL]: STEP'")
        variants = tuple(variant_text(each, line.where, known) for each in named.split(","))
        if len(set(variants)) < len(variants):
            raise UsageError(f"{line.where}: {line.text!r}: a protocol twice; expected each once")
    also = () if variants else (*_HEADS, *_CONDITIONAL, "expect")
    act: Any = Line(_present(text), line.where, names).read(STEPS, also)
    return Step(
        line=line.number, act=act, narrative=narrative, variants=variants, unless=line.word == _CONDITIONAL[1]
    )


def _present(act: str) -> str:
    """Return the step's text with the current name of its fault."""
    word, _, rest = act.partition(" ")
    return f"{present(FAULT, word)} {rest}" if rest else act


def variant_text(text: str, where: str, known: Variants | None) -> str:
    """Return a variant's canonical text; raise UsageError if it is malformed or unknown."""
    variant = Variant.parse(text, where)
    if known is not None:
        known.check(variant, where)
    return str(variant)


def _expect(expectations: dict[str, tuple[str, str]], line: RawLine, names: Names, known: Variants | None) -> None:
    named, colon, outcome = line.rest.partition(": ")
    if not colon or not outcome.strip():
        raise UsageError(f"{line.where}: expect {line.rest!r}; expected 'expect PROTOCOL[, PROTOCOL]: OUTCOME'")
    try:
        check_expectation(outcome.strip(), names.nodes, names.groups)
    except UsageError as error:
        raise UsageError(f"{line.where}: {error}") from error
    for text in named.split(","):
        variant = variant_text(text, line.where, known)
        if variant in expectations:
            raise UsageError(
                f"{line.where}: {variant} has the expectation {expectations[variant][1]!r} already; expected one"
            )
        expectations[variant] = (line.where, outcome.strip())


def check_sent_once(steps: Sequence[Step], where: str) -> None:
    """Check that no variant sends a group of records twice: its values would not be unique."""
    sent: dict[str, list[Step]] = {}
    for step in steps:
        if isinstance(step.act, Produce):
            before = sent.setdefault(step.act.group, [])
            if twice := next((each for each in before if not each.excludes(step)), None):
                raise UsageError(
                    f"{where}:{step.line}: {step.text!r}: line {twice.line} sends {step.act.group} already; "
                    "expected each group of records once"
                )
            before.append(step)

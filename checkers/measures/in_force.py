"""When each fault and each rule for links was in force, from the ops of the nemesis and the fabric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from harness.effect import Effect, nature_of
from harness.events import Cut, Heal, Hold, Injection, LinkRule, OfLink, Release
from harness.model import Op, OpType

# A fault's name, and its first and last moment in nanoseconds since the run began.
Span: TypeAlias = tuple[str, int, int]

_METADATA: Final = "metadata"
_RULES: Final = ("hold", "cut", "delay", "double")


@dataclass(slots=True)
class InForce:
    """The faults of a run so far; `spans` returns when each was in force."""

    _ended: list[Span] = field(default_factory=list)
    _invoked: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    # A node and what it suffers, or a link and what is done to its frames -> the fault's name, and since when.
    _standing: dict[tuple[object, ...], tuple[str, int]] = field(default_factory=dict)

    def add(self, op: Op) -> None:
        """Take one op into account."""
        match op.event:
            case Injection() as fault:
                self._add_fault(op, fault)
            case LinkRule() | Cut() | Heal() as rule:
                self._add_rule(op, rule)

    def spans(self, end_ns: int) -> Iterator[Span]:
        """Yield every fault that took effect; one that was not undone lasted to the end."""
        yield from self._ended
        for name, since_ns in self._standing.values():
            yield name, since_ns, end_ns

    def standing(self) -> list[str]:
        """Return what is in force now, each as `kill:A`, or `hold Fetch:A->*` for a rule of a link."""
        found = []
        for key, (name, _) in self._standing.items():
            where = key[0] if isinstance(key[1], Effect) else f"{key[1]}->{key[2]}"
            found.append(f"{name}:{where}")
        return sorted(found)

    def _add_fault(self, op: Op, fault: Injection) -> None:
        key = fault.name, fault.nodes
        if op.type is OpType.INVOKE:
            self._invoked[key] = op.time_ns
            return
        since_ns = self._invoked.pop(key, op.time_ns)
        if op.type is not OpType.OK:
            return
        nature = nature_of(op)
        for node in fault.nodes:
            for effect in nature.heals:
                self._end((node, effect), op.time_ns)
            if nature.effect.lasts:
                self._standing.setdefault((node, nature.effect), (fault.name, since_ns))
            elif nature.effect is not Effect.NONE:
                self._ended.append((fault.name, since_ns, op.time_ns))

    def _add_rule(self, op: Op, rule: OfLink) -> None:
        if _METADATA in rule.link:  # a zombie's: the fault has a name of its own
            return
        api = direction = ""
        if isinstance(rule, LinkRule | Heal):
            api, direction = rule.api or "", rule.direction or ""
        frames = (*rule.link, api, direction)
        if isinstance(rule, Release | Heal):
            kinds = ("hold",) if isinstance(rule, Release) else _RULES[1:]
            for kind in kinds:
                self._end((kind, *frames), op.time_ns)
        else:
            kind = "hold" if isinstance(rule, Hold) else op.f
            self._standing.setdefault((kind, *frames), (f"{kind} {api}".strip(), op.time_ns))

    def _end(self, key: tuple[object, ...], at_ns: int) -> None:
        standing = self._standing.pop(key, None)
        if standing is not None:
            self._ended.append((*standing, at_ns))

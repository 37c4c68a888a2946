"""
A target of one's own whose calls all end, in what they must return or in an error that names target and part.

A target is code that the harness has not seen. Wrong answers about its versions are wrong use (UsageError). Wrong
answers within a run make the run unknown (BrokenPartError), and a request to its operator that fails so is an
observation lost, whatever else the run does. Metadata, wire, logs and clients have guards of their own, since they
are called again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from harness import limits
from harness.late import LateError, apart
from harness.launch import Launch
from harness.model import FencepostError, PreconditionError, TargetError, UsageError
from harness.target.metadata import Metadata, TargetRun
from harness.target.operator import Operator
from harness.target.parts import members
from harness.target.target import NodeSpec, Target
from harness.target.traits import Traits
from harness.unseen_value import text_of

T = TypeVar("T")


class BrokenPartError(PreconditionError):
    """A part of a target did in a run what it may not do; the text names target and part."""


def guarded(target: Target) -> Target:
    """Return the target with its calls guarded."""
    return cast(Target, _Guarded(target))


def asked(
    whose: str, call: Callable[[], T], fits: Callable[[object], bool], expected: str, error: type[FencepostError]
) -> T:
    """
    Return what a call of a target's own code returns.

    Args:
        whose: "target NAME, PART".
        fits: whether the call may return this.
        error: what is raised if it may not, if the call raises anything but a FencepostError, or if it does not
            return within TARGET_CALL_S_MAX.
    """
    try:
        found = apart(call, limits.TARGET_CALL_S_MAX)
    except (FencepostError, KeyboardInterrupt):
        raise
    except LateError:
        text = f"no answer within {limits.TARGET_CALL_S_MAX:g} s"
    except BaseException as raised:
        raise error(f"{whose}: {type(raised).__name__}: {text_of(raised)}; expected {expected}") from raised
    else:
        if _fits(fits, found):
            return found
        text = text_of(found)
    raise error(f"{whose}: {text}; expected {expected}")


def _fits(fits: Callable[[object], bool], found: object) -> bool:
    try:
        return fits(found)
    except Exception:  # a value whose own methods raise
        return False


# --- what a call may return --------------------------------------------------------------------------------------
def _texts(found: object) -> bool:
    return isinstance(found, Mapping) and all(isinstance(each, str) for pair in found.items() for each in pair)


def _versions(found: object) -> bool:
    if not isinstance(found, Mapping) or not found:
        return False
    return all(isinstance(name, str) and name and _texts(rules) for name, rules in found.items())


def _launch(found: object) -> bool:
    if not isinstance(found, Launch) or not isinstance(found.argv, tuple) or not found.argv:
        return False
    return all(isinstance(word, str) and word for word in found.argv) and _texts(found.files) and _texts(found.env)


class _Guarded:
    """A target whose other attributes are those of the one behind it."""

    def __init__(self, target: Target) -> None:
        self._target = target

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the target behind it, so that it is of its kind."""
        return type(self._target)

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._target, name)
        except (AttributeError, FencepostError):
            raise
        except Exception as error:
            raise UsageError(
                f"{self._of(name)}: {type(error).__name__}: {text_of(error)}; expected the part"
            ) from error

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return its versions."""
        expected = "a mapping of each version to its rules as text"
        return asked(self._of("protocols"), self._target.protocols, _versions, expected, UsageError)

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return the rules of a version."""
        expected = "a mapping of each rule to its value as text, or a UsageError"
        return asked(
            self._of("rules"), lambda: self._target.rules(protocol, changes), _texts, expected, UsageError
        )

    def traits(self, protocol: str, changes: Sequence[str]) -> Traits:
        """Return what is true of a version."""
        return asked(
            self._of("traits"),
            lambda: self._target.traits(protocol, changes),
            lambda found: isinstance(found, Traits),
            "Traits",
            UsageError,
        )

    def require(self, rules: Mapping[str, str]) -> None:
        """Check that this machine has what it needs."""
        expected = "nothing, or a UsageError"
        asked(self._of("require"), lambda: self._target.require(rules), lambda _: True, expected, UsageError)

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """Return how to start a node."""
        return asked(
            self._of("launch"),
            lambda: self._target.launch(spec, protocol, rules),
            _launch,
            "a Launch whose argv is a tuple of words",
            BrokenPartError,
        )

    def metadata(self, run: TargetRun) -> Metadata:
        """Open the metadata of a run."""
        return asked(
            self._of("metadata"),
            lambda: self._target.metadata(run),
            lambda found: all(hasattr(found, each) for each in members(Metadata)),
            "Metadata",
            BrokenPartError,
        )

    def operator(self, run: TargetRun, metadata: Metadata) -> Operator:
        """Return the operator of a run, guarded too."""
        whose = self._of("operator")
        made = asked(
            whose,
            lambda: self._target.operator(run, metadata),
            lambda found: isinstance(found, Operator),
            "an Operator",
            BrokenPartError,
        )
        return _GuardedOperator(made, whose, run.give_up)

    def _of(self, part: str) -> str:
        return f"target {self._target.name}, {part}"


class _GuardedOperator(Operator):
    """The operator of a target of one's own; what else it has is that of the one behind it."""

    def __init__(self, operator: Operator, whose: str, give_up: Callable[[Exception], object]) -> None:
        self._operator = operator
        self._whose = whose
        self._give_up = give_up

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    @property
    def creates(self) -> bool:
        """Whether topics are made by the operator."""
        return self._operator.creates

    def create(self, topic: str, assignments: Sequence[Sequence[str]]) -> str:
        """Make a topic."""
        return self._line("create", topic, assignments)

    def add(self, topic: str, first: int, assignments: Sequence[Sequence[str]]) -> str:
        """Make further partitions."""
        return self._line("add", topic, first, assignments)

    @property
    def appoints(self) -> bool:
        """Whether a controller is made by the operator."""
        return self._operator.appoints

    def appoint(self, name: str) -> str:
        """Have a node be the controller."""
        return self._line("appoint", name)

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Ask for a leader."""
        return self._line("elect", topic, partition, name)

    def elections_asked(self) -> object:
        """Return the mark of elections."""
        return self._asked("elections_asked", lambda _: True, "a mark, or None")

    def move(self, topic: str, partition: int, names: Sequence[str]) -> str:
        """Ask for a move."""
        return self._line("move", topic, partition, names)

    def wanted(self, topic: str, partition: int) -> tuple[str | None, ...]:
        """Return the nodes asked for."""

        def names(found: object) -> bool:
            return isinstance(found, tuple) and all(each is None or isinstance(each, str) for each in found)

        found: tuple[str | None, ...] = self._asked("wanted", names, "a tuple of names", topic, partition)
        return found

    def remove(self, topic: str, partitions: Sequence[int]) -> str:
        """Ask for partitions to be taken out."""
        return self._line("remove", topic, partitions)

    def expire(self, name: str) -> str:
        """End a membership."""
        return self._line("expire", name)

    def depose(self) -> str:
        """Take the office."""
        return self._line("depose")

    def _line(self, method: str, *args: Any) -> str:
        found: str = self._asked(
            method, lambda found: isinstance(found, str), "one line that says what was asked", *args
        )
        return found

    def _asked(self, method: str, fits: Callable[[object], bool], expected: str, *args: Any) -> Any:
        whose = f"{self._whose}: {method}"
        try:
            return asked(whose, lambda: getattr(self._operator, method)(*args), fits, expected, BrokenPartError)
        except BrokenPartError as error:
            self._give_up(TargetError(str(error)))
            raise

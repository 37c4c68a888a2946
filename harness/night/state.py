"""`State`: what a night has done so far, as its journal says; nothing else is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.model import UsageError
from harness.night.count import Count
from harness.night.schedule import LineKey


@dataclass(slots=True)
class Progress:
    """
    How far a unit is.

    Attributes:
        count: what its runs showed.
        done: the places of the runs that were judged; of a unit in the simulator none until it has ended.
        used_s: the time that it has had.
        ended: whether it is over.
        problem: why it could not be played, or not all of it; "" if it could.
        notes: what was left out of it.
    """

    count: Count = field(default_factory=Count)
    done: set[int] = field(default_factory=set)
    used_s: float = 0.0
    ended: bool = False
    problem: str = ""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class State:
    """
    What a night has done.

    Attributes:
        about: the first line.
        units: number -> how far the unit is, of those that began.
        sessions: of each process that played it: when it began, and whether it is strict.
        left_out: line -> what the machine lacks for it, as the last session found.
        removed: folder below the nights' folder -> its bytes, of what was deleted for want of space.
        interrupted: how often somebody ended a session.
        spent_s: how long it has been at work.
        finished: whether it is over.
        notes: what else went wrong, in words.
    """

    about: Mapping[str, Any] = field(default_factory=dict)
    units: dict[int, Progress] = field(default_factory=dict)
    sessions: list[Mapping[str, Any]] = field(default_factory=list)
    left_out: dict[LineKey, str] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    interrupted: int = 0
    spent_s: float = 0.0
    finished: bool = False
    notes: list[str] = field(default_factory=list)

    @staticmethod
    def of(lines: Iterable[Mapping[str, Any]], where: str = "journal") -> State:
        """
        Return the state after these lines, which are those of the file `where`.

        Raises:
            UsageError: a line lacks something, or has something else than a night writes.
        """
        state = State()
        for number, line in enumerate(lines, start=1):
            try:
                state.add(line)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise UsageError(
                    f"{where}:{number}: {error!r:.100}; expected a line of a night's journal; move the night's "
                    "folder away"
                ) from error
        return state

    def add(self, line: Mapping[str, Any]) -> None:
        """Take one line into account."""
        self.spent_s = line["spent_s"]
        match line["what"]:
            case "night":
                self.about = line
            case "session":
                self.sessions.append(line)
            case "asked":
                self.left_out = {(role, name): why for role, name, why in line["left_out"]}
            case "begun":
                self.units.setdefault(line["unit"], Progress())
            case "ran":
                unit = self.units.setdefault(line["unit"], Progress())
                unit.count.merge(Count.from_dict(line["count"]))
                unit.done.add(line["place"])
                unit.used_s = line["used_s"]
            case "ended":
                unit = self.units.setdefault(line["unit"], Progress())
                unit.count.merge(Count.from_dict(line["count"]))
                unit.ended, unit.problem, unit.notes = True, line["problem"], tuple(line["notes"])
                unit.used_s = line["used_s"]
            case "removed":
                self.removed[line["folder"]] = line["bytes"]
            case "note":
                self.notes.append(line["text"])
            case "interrupted":
                self.interrupted += 1
            case "finished":
                self.finished = True

    @property
    def strict(self) -> bool:
        """Whether a line that is left out makes the night unknown, as its last session was asked to."""
        return bool(self.sessions and self.sessions[-1].get("strict", False))

    def progress(self, number: int) -> Progress:
        """Return how far a unit is."""
        return self.units.get(number, Progress())

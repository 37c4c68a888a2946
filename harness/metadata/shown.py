"""
Metadata that are what was shown last: one look after another, each checked and recorded before anything is asked.

What a target's own code raises, or shows that cannot be, is an observation lost: the run is unknown, and says
"target NAME, metadata: …".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from harness import limits
from harness.events import ControllerNamed, Members
from harness.late import Calls, LateError, apart
from harness.metadata.recorder import Recorder
from harness.model import PreconditionError, TargetError
from harness.target.metadata import UNNUMBERED, Look, Metadata, Office, PartitionTruth, Place, TargetRun
from harness.unseen_value import text_of

T = TypeVar("T")


class Shown(Metadata):
    """
    The base of metadata that a thread keeps up to date by `show`. A listener of the history never asks them.

    Args:
        work: what the thread does; `show` is called in it alone, and the target's own code by `asked`.
        end: what lets it end, besides `close` itself.
    """

    def __init__(self, run: TargetRun, work: Callable[[], None], end: Callable[[], None] = lambda: None) -> None:
        self._run = run
        self._end = end
        # Never held while the history is written, which has a lock of its own.
        self._changed = threading.Condition()
        self._recording = threading.Lock()
        self._look = Look()
        self._versions: dict[Place, int] = {}
        self._recorder: Recorder | None = None
        self._places: Sequence[Place] = ()
        self._problem = ""
        # Whether there was a look yet.
        self._shows = False
        self._closed = False
        # Whether a look ever showed one.
        self._has_members = False
        self._has_office = False
        self._calls = Calls()
        self._thread = threading.Thread(
            target=self._guarded, args=(work,), name=f"metadata of {run.target}", daemon=True
        )

    def start(self) -> None:
        """Start the thread, once all of the object is there."""
        self._thread.start()

    # --- in the thread ---------------------------------------------------------------------------------------
    def _guarded(self, work: Callable[[], None]) -> None:
        self._calls.bind(threading.get_ident())
        try:
            work()
        except LateError:
            return  # `close` says so
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}; expected what it shows")

    def asked(self, function: Callable[..., T], *args: Any) -> T:
        """Return what the target's own code returns, or raise what it raises; `close` ends it if it loops."""
        return self._calls.call(function, *args)

    def show(self, look: object) -> None:
        """Record what is new in a look, and take it as what the metadata show from then on."""
        if self._closed or self._problem:
            return
        if problem := problem_of(look, self._run.ids):
            self.fail(problem)
            return
        assert isinstance(look, Look), "a look without a problem"
        with self._recording:
            found = replace(look, states=self._numbered(look.states))
            self._record(found)
            with self._changed:
                self._look, self._shows = found, True
                self._changed.notify_all()

    def fail(self, problem: str) -> None:
        """Note the first thing that is wrong with the part: every later ask raises it, and the run is unknown."""
        with self._changed:
            if self._problem or self._closed:
                return
            self._problem = f"target {self._run.target}, metadata: {problem}"
            self._changed.notify_all()
        self._run.give_up(TargetError(self._problem))

    def _numbered(self, states: Mapping[Place, PartitionTruth]) -> Mapping[Place, PartitionTruth]:
        """Return the states with a version: where the system has none, one that rises with each change seen."""
        found: dict[Place, PartitionTruth] = {}
        for place, state in states.items():
            before = self._look.states.get(place)
            if state.version == UNNUMBERED and (before is None or replace(before, version=UNNUMBERED) != state):
                self._versions[place] = self._versions.get(place, UNNUMBERED) + 1
            found[place] = replace(state, version=self._versions[place]) if state.version == UNNUMBERED else state
        return found

    def _record(self, look: Look) -> None:
        if (recorder := self._recorder) is None:
            return
        # Whoever leads or is in sync is a member first. A system need not show members, nor have a controller.
        self._has_members = self._has_members or bool(look.members)
        if self._has_members:
            recorder.note(Members(nodes=tuple(sorted(look.members))))
        self._has_office = self._has_office or look.office is not None
        if self._has_office:
            recorder.note(ControllerNamed(node=None if look.office is None else look.office.node))
        for topic, partition in self._places:
            if (state := look.states.get((topic, partition))) is not None:
                recorder.note(state.event(topic, partition))
        for topic in dict.fromkeys(topic for topic, _ in self._places):
            recorder.note_placed(topic, _of_topic(look, topic))

    # --- asked by others ---------------------------------------------------------------------------------------
    def watch(self, places: Sequence[Place]) -> None:
        """Record what is there, and every change that is seen from now on."""
        self.refresh()
        with self._recording:
            self._recorder, self._places = Recorder(self._run.record, places), tuple(places)
            self._record(self._look)

    def refresh(self) -> None:
        """Return once what is shown is as new as this metadata can be; raise PreconditionError if that fails."""
        self.require()

    def require(self) -> None:
        """Raise PreconditionError if something is wrong with the part."""
        if self._problem:
            raise PreconditionError(self._problem)

    def _now(self) -> Look:
        self.refresh()
        return self._look

    def truth(self, topic: str, partition: int) -> PartitionTruth | None:
        """Return the partition's state, None if there is none yet."""
        return self._now().states.get((topic, partition))

    def assignment(self, topic: str) -> Mapping[int, tuple[str | None, ...]]:
        """Return the nodes of each partition of a topic; {} if there is no such topic."""
        return _of_topic(self._now(), topic)

    def incarnation(self, name: str) -> int:
        """Return the incarnation of a node's membership, 0 for no member."""
        return self._now().members.get(name, 0)

    def controller(self) -> str | None:
        """Return the controller, None for none."""
        office = self._now().office
        return None if office is None else office.node

    def said(self, topic: str, partition: int) -> Mapping[str, str]:
        """Return what nodes said of their part in a partition when they were seen last."""
        return self._look.said.get((topic, partition), {})

    def office(self) -> Office | None:
        """Return the controller's office, None while nobody holds it."""
        return self._now().office

    def close(self) -> None:
        """
        End the thread; safe to call twice.

        Raises:
            PreconditionError: it does not end in time; a call that waits is left alone, and the run is unknown.
        """
        with self._changed:
            ended, self._closed = self._closed, True
            self._changed.notify_all()
        if ended:
            return
        within_s = limits.METADATA_END_S_MAX
        at_work = f"at work {within_s:g} s after the end of the run; expected it to end with it"
        problem = ""
        try:
            apart(self._end, within_s)  # the target's own code, which may hang too
        except LateError:
            problem = at_work
        except Exception as error:
            problem = f"its end raised {type(error).__name__}: {error}; expected it to let its looks end"
        self._thread.join(within_s)
        if self._thread.is_alive():
            self._calls.interrupt()
            problem = at_work
        if problem:
            raise PreconditionError(f"target {self._run.target}, metadata: {problem}")


def _of_topic(look: Look, topic: str) -> Mapping[int, tuple[str | None, ...]]:
    return {partition: nodes for (of, partition), nodes in look.assigned.items() if of == topic}


def problem_of(look: object, ids: Mapping[str, int]) -> str:
    """Return what cannot be in a look that a target's own code made, "" for nothing."""
    if not isinstance(look, Look):
        return f"{text_of(look)}; expected a Look"
    try:
        wrong = next(_wrong(look, ids, {*ids, None}), "")
    except (TypeError, ValueError, AttributeError) as error:
        return f"{text_of(look)}: {error}; expected a Look"
    return f"{wrong}; expected nodes of {', '.join(ids)} or None, and whole numbers" if wrong else ""


def _wrong(look: Look, ids: Mapping[str, int], names: set[str | None]) -> Iterator[str]:
    """Yield each part of a look that is of no node of the run, or has no whole number in its place."""
    for (topic, partition), state in look.states.items():
        numbers = not _low(state.epoch, -1) and not _low(state.version, UNNUMBERED)
        named = isinstance(state.in_sync, tuple) and {state.leader, *state.in_sync} <= names
        if not numbers or not named or not {*state.unheard} <= {*ids}:
            yield f"state of {topic}-{partition}: {text_of(state)}"
    for name, incarnation in look.members.items():
        if name not in ids or _low(incarnation, 1):
            yield f"member {text_of(name)}, incarnation {text_of(incarnation)}"
    for (topic, partition), nodes in look.assigned.items():
        if not isinstance(nodes, tuple) or not {*nodes} <= names:
            yield f"replicas of {topic}-{partition}: {text_of(nodes)}"
    for (topic, partition), words in look.said.items():
        if not {*words} <= {*ids} or not all(isinstance(each, str) for each in words.values()):
            yield f"what is said of {topic}-{partition}: {text_of(words)}"
    office = look.office
    if office is not None and (office.node not in names or _low(office.member, 0) or _low(office.incarnation, 0)):
        yield f"office: {text_of(office)}"


def _low(number: object, least: int) -> bool:
    """Return True for what is no whole number, or one below the least."""
    return not isinstance(number, int) or isinstance(number, bool) or number < least

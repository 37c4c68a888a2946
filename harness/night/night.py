"""
Plays a night: begins one, or goes on with one that was killed, and ends with its page.

A night is a loop over the units of its schedule; the journal says which are done. What goes wrong with a unit is
said of that unit, and the night goes on; only a journal that cannot be written ends it.
"""

from __future__ import annotations

import secrets
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from harness.cleanup.ledger import reap
from harness.hosts import TAKE_PORTS
from harness.model import EXIT_CODES, FencepostError, UsageError
from harness.night.journal import LINES, VERSION, Journal
from harness.night.known import KnownSeeds, chosen
from harness.night.live import NightProgress
from harness.night.lock import alone
from harness.night.needs import lacks_of
from harness.night.opening import (
    KNOWN,
    SEED_MAX,
    Options,
    new_folder,
    unended_in,
    units_of,
)
from harness.night.outcome import Outcome, by_reason, outcome_of
from harness.night.output import write_night
from harness.night.play import Ended, Table, play_unit, remember
from harness.night.schedule import Role, Unit, digest_of
from harness.night.state import State
from harness.night.trim import FINDINGS, Shelf
from harness.report.text import plural
from harness.run.failure import reason_of
from harness.run.result import RunResult
from harness.run.store import LATEST, Run, check_results, point
from harness.suite.interrupts import INTERRUPTS
from harness.version import build, commit, version

# The page of a night that is at work is written so often, so that a night that is killed for good has one.
PAGE_EVERY_S: Final = 300.0
# Where hosts have their files while they are asked what they lack.
ASKED: Final = "asked"
# Units that have not begun by then are not played: a machine may be much slower than the plan reckons.
LATE: Final = 2.0
LATE_S: Final = 1800.0


def play_night(options: Options, console: Console, clock: Callable[[], float] = time.monotonic) -> Outcome:
    """
    Play a night to its end, and return what came of it.

    Raises:
        UsageError: another night is at work on these results, or something cannot be read or written.
        KeyboardInterrupt: after everything is down; the night goes on when it is started again.
    """
    check_results(options.results)
    with alone(options.nights):
        night = _Night.opened(options, console, clock)
        try:
            return night.play()
        except KeyboardInterrupt:
            night.interrupted()
            raise
        finally:
            night.journal.close()


@dataclass(slots=True, kw_only=True)
class _Night:
    """A night that this process plays."""

    options: Options
    console: Console
    folder: Path
    journal: Journal
    state: State
    units: Sequence[Unit]
    known: KnownSeeds
    shelf: Shelf
    at_work: str = ""
    written_s: float = field(default=0.0)

    # --- begin, or go on -----------------------------------------------------------------------------------------
    @staticmethod
    def opened(options: Options, console: Console, clock: Callable[[], float]) -> _Night:
        """Return the night that was not ended, if it is what was asked for; else a new one."""
        unended = unended_in(options.nights)
        if unended is not None and (night := _Night._again(unended, options, console, clock)) is not None:
            why = night.differs()
            if not why:
                night.begin_session()
                done = sum(each.ended for each in night.state.units.values())
                night.say(f"night {unended.name} goes on: {done} of {len(night.units)} units are done")
                return night
            night.say(f"night {unended.name} was not ended and is closed: {why}")
            night.tell("note", text=f"closed before its end: {why}")
            night.end()
            night.journal.close()
        return _Night._new(options, console, clock)

    @staticmethod
    def _new(options: Options, console: Console, clock: Callable[[], float]) -> _Night:
        seed = secrets.randbelow(SEED_MAX) if options.seed is None else options.seed
        known = KnownSeeds(options.nights / KNOWN)
        targets = {target for play in options.plan.plays for target in play.targets}
        again, left = chosen(known.read(), hosts=options.plan.hosts, targets=targets, most=options.plan.known_max)
        folder = new_folder(options.nights, seed)
        journal, _ = Journal.open(folder, clock)
        about = {
            "version": VERSION,
            "night": folder.name,
            "seed": seed,
            "started": _now(),
            "commit": commit(),
            "known": [asdict(each) for each in again],
            "known_left_out": left,
            **options.asked,
        }
        state = State.of([{"what": "night", "spent_s": 0.0, **about}])
        night = _Night._of(options, console, folder, journal, state)
        night.tell("night", digest=digest_of(night.units), **about)
        night.begin_session()
        night.say(f"night {folder.name}: seed {seed}, {build()}, {len(night.units)} units")
        return night

    @staticmethod
    def _again(folder: Path, options: Options, console: Console, clock: Callable[[], float]) -> _Night | None:
        """Return a night that was not ended; None if a fresh one is asked for, and this one cannot be read."""
        journal, lines = Journal.open(folder, clock)
        try:
            return _Night._of(options, console, folder, journal, State.of(lines, str(folder / LINES)))
        except UsageError as error:
            if options.fresh:
                journal.write("finished", code=EXIT_CODES["unknown"])
                return None
            raise UsageError(
                f"{folder}: not ended, and cannot go on: {error}; begin a new night (--fresh), or move it away"
            ) from error

    @staticmethod
    def _of(options: Options, console: Console, folder: Path, journal: Journal, state: State) -> _Night:
        known = KnownSeeds(options.nights / KNOWN)
        shelf = Shelf(
            nights=options.nights,
            night=folder.name,
            bytes_max=options.plan.disk_mb * 1_000_000,
            tell=lambda _path, _size: None,
        )
        night = _Night(
            options=options,
            console=console,
            folder=folder,
            journal=journal,
            state=state,
            units=units_of(state.about, known.folder),
            known=known,
            shelf=shelf,
        )
        shelf.tell = night.removed
        journal.make_room = shelf.make_room
        return night

    def begin_session(self) -> None:
        """Say in the journal that this process plays the night."""
        self.tell("session", at=_now(), commit=commit(), fencepost=version(), strict=self.options.strict)

    def differs(self) -> str:
        """Return why a night that was not ended is not the one that is asked for, "" if it is."""
        about, options = self.state.about, self.options
        if options.fresh:
            return "a fresh one is asked for"
        other = [key for key, value in options.asked.items() if about.get(key) != value]
        if options.seed not in (None, about["seed"]):
            other.append("seed")
        if other:
            return f"it was begun with another {' and '.join(other)}"
        return "" if about["digest"] == digest_of(self.units) else "this version would play another schedule"

    # --- play ----------------------------------------------------------------------------------------------------
    def play(self) -> Outcome:
        """Play what is left, and end the night."""
        reap()
        self._mend()
        self._ask()
        open_units = [unit for unit in self.units if self._is_ahead(unit)]
        with NightProgress(self.console, len(self.units), self._violations()) as progress:
            for unit in open_units:
                self._play(unit, progress)
                if time.monotonic() - self.written_s >= PAGE_EVERY_S:
                    self._write()
        return self.end()

    def _ask(self) -> None:
        """
        Ask once what the machine lacks, leave out what it cannot play, and say so.

        A session that goes on asks again: a line is back as soon as the machine has what it needs.
        """
        ahead = [unit for unit in self.units if not self.state.progress(unit.number).ended]
        folder = self.shelf.playing(ASKED).path
        found = lacks_of(ahead, ports=self.options.ports, folder=folder, note=self._note)
        self.shelf.drop(folder)
        self.tell("asked", left_out=[[*key, why] for key, why in found.items()])
        for why, names in by_reason(found):
            self.say(f"left out, {plural(len(names), 'line')}: {why}")
            for name in names:
                self.say(f"  {name}")

    def _is_ahead(self, unit: Unit) -> bool:
        return not self.state.progress(unit.number).ended and unit.key not in self.state.left_out

    def _note(self, text: str) -> None:
        self.tell("note", text=text)

    def _play(self, unit: Unit, progress: NightProgress) -> None:
        before = self.state.progress(unit.number)
        if self.journal.spent_s > LATE * self.options.seconds + LATE_S:
            self._ended(
                unit, Ended(problems=["not played, as the night's time was up"], used_s=before.used_s), progress
            )
            return
        self.at_work = f"unit {unit.number}, {unit.role} {unit.line}"
        self.tell("begun", unit=unit.number)
        progress.begin(unit, before.count.runs, lambda: self.options.seconds - self.journal.spent_s)
        table = Table(
            night=self.folder.name,
            shelf=self.shelf,
            known=self.known,
            journal=self.journal,
            tell=self.tell,
            saw=lambda result: _show(progress, unit, result),
            jobs=self.options.jobs,
            ports=self.options.ports if unit.host in TAKE_PORTS else None,
        )
        try:
            ended = play_unit(unit, before, table, self._seconds(unit))
        except (FencepostError, OSError) as error:
            if self.journal.failed:
                raise
            ended = Ended(problems=[f"could not be played: {reason_of(error)}"])
        except Exception as error:
            ended = Ended(problems=[f"could not be played: {reason_of(error)} ({self._traceback(unit, error)})"])
        ended.used_s = ended.used_s or self.state.progress(unit.number).used_s
        self._ended(unit, ended, progress)
        self.at_work = ""

    def _ended(self, unit: Unit, ended: Ended, progress: NightProgress) -> None:
        problem = "; ".join(ended.problems)
        self.tell(
            "ended",
            unit=unit.number,
            count=ended.count.to_dict(),
            problem=problem,
            notes=ended.notes,
            used_s=round(ended.used_s, 3),
        )
        now = self.state.progress(unit.number)
        firsts = {finding.cause: finding for finding in reversed(now.count.violations)}
        for cause, finding in firsts.items() if unit.role is not Role.CANARY else ():
            progress.say(f"  finding: {cause.kind}: {cause.text}")
            progress.say(f"    again: {finding.again}")
        progress.end(unit, now.count, problem)

    def _seconds(self, unit: Unit) -> float:
        """
        Return how long a unit that is timed may be at work.

        What is counted, in the simulator, may take longer or shorter than reckoned: what is timed shares the rest.
        """
        ahead = [each for each in self.units if each.number >= unit.number]
        ahead = [each for each in ahead if self._is_ahead(each)]
        counted = sum(each.seconds for each in ahead if each.seeds)
        timed = sum(
            max(0.0, each.seconds - self.state.progress(each.number).used_s) for each in ahead if not each.seeds
        )
        left = max(0.0, self.options.seconds - self.journal.spent_s - counted)
        used = self.state.progress(unit.number).used_s
        return used + max(0.0, unit.seconds - used) * (left / timed if timed else 1.0)

    def _mend(self) -> None:
        """Do what a killed session said that it would: keep findings, and remember their seeds."""
        table = Table(
            night=self.folder.name,
            shelf=self.shelf,
            known=self.known,
            journal=self.journal,
            tell=self.tell,
            saw=lambda _: None,
        )
        for unit in self.units:
            progress = self.state.progress(unit.number)
            for finding in progress.count.findings:
                here = self.shelf.playing_path(finding.folder)
                if finding.folder and here.is_dir():
                    self.shelf.keep(Run(path=here), finding.folder)
                if finding.is_violation and unit.role is Role.PLAY:
                    remember(unit, finding.seed - unit.first, finding, table)

    # --- the end -------------------------------------------------------------------------------------------------
    def end(self) -> Outcome:
        """Write the page, say in the journal that the night is over, and return what came of it."""
        self.shelf.clear()
        outcome = outcome_of(self.state, self.units, finished=True)
        problem = self._write(outcome)
        if problem:
            outcome.notes.append(problem)
        self.tell("finished", code=outcome.code)
        return outcome

    def interrupted(self) -> None:
        """Say in the journal at which unit somebody ended the session, and write the page so far."""
        with INTERRUPTS.shielded():
            self.tell("interrupted", at=self.at_work)
            self._write()

    def _write(self, outcome: Outcome | None = None) -> str:
        """Write the night's pages as it is now; return what went wrong."""
        self.written_s = time.monotonic()
        found = outcome or outcome_of(self.state, self.units, finished=False)
        with ExitStack() as stack:
            if outcome is not None:
                stack.enter_context(INTERRUPTS.shielded())
            try:
                if outcome is not None:
                    self.journal.release()
                write_night(found, self.options.nights, self.folder)
                point(self.options.nights / LATEST, self.folder.name)
            except OSError as error:
                problem = f"page of the night: not written: {reason_of(error)}"
                self.say(problem)
                return problem
        return ""

    def tell(self, what: str, **values: Any) -> None:
        """Write a line of the journal, and take it into account."""
        self.state.add(self.journal.write(what, **values))

    def removed(self, path: str, size: int) -> None:
        """Say that a folder was deleted for want of space."""
        if f"/{FINDINGS}/" in path:
            self.say(f"deleted, since all nights together are larger than {self.options.plan.disk_mb} MB: {path}")
        self.tell("removed", folder=path, bytes=size)

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _violations(self) -> int:
        counted = [unit for unit in self.units if unit.role is not Role.CANARY]
        return sum(len(self.state.progress(unit.number).count.violations) for unit in counted)

    def _traceback(self, unit: Unit, error: Exception) -> str:
        path = self.folder / f"traceback-{unit.number}.txt"
        try:
            path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        except OSError as full:
            return f"its traceback could not be written: {full.strerror}"
        return f"traceback in {path.name}"


def _show(progress: NightProgress, unit: Unit, result: RunResult) -> None:
    progress.saw(result, counts=unit.role is not Role.CANARY)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

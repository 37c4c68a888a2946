"""
The traits of a system under test: what its evidence can be, as data that the judge asks in place of names.

They are recorded in a run's set-up, so that a stored run is judged without the target that it was played on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Any, Final, get_type_hints

from harness.events import Setup
from harness.events.older import handed_over
from harness.model import HistoryError

_YES: Final[Mapping[str, bool]] = {"yes": True, "no": False}


class Epochs(StrEnum):
    """Where a replica keeps the leader epoch of each record."""

    IN_RECORDS = "in-records"
    BESIDE = "beside-the-log"
    NONE = "none"


class Commit(StrEnum):
    """Which replicas have a record once it is committed."""

    IN_SYNC = "all-in-sync"
    LEADER = "the-leader"
    QUORUM = "a-quorum"


class Promise(StrEnum):
    """What each of these replicas promises of a record that was acknowledged with all of them."""

    MEMORY = "in-memory"
    DISK = "on-disk"


class Seen(StrEnum):
    """How changes of the metadata are seen."""

    WATCHED = "watched"  # each is seen, but one that the next replaces at once: versions show the gap
    POLLED = "polled"  # what lies between two looks is not known: a gap of versions proves nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """
    What is true of a system, under some of its rules, in some environment.

    Attributes:
        metadata: the noun for what holds the metadata, in sentences.
        named: the name, as `kafka:2.1.1`, by which scenarios name this version alone; "" for none. The part before
            the colon names all versions of the system.
        models: the protocol of ours that it is compared with; "" for one of ours. Expectations and conditional
            steps of scenarios are looked up by it.
        emits_events: whether its nodes say themselves what they do.
        exact_order: whether the order and the times of all events are exact; an environment's trait.
        tells_flushes: whether the flushes of its files are among its events; so they are of real files.
        epochs: where the epochs of records are.
        epochs_file: the name of the file in a replica's folder that has its epochs; "" for none.
        marks_file: the file of a node, relative to its data directory, that has its high watermarks; "" for none.
        clean_file: the file that says that a node has ended in order, relative too; "" for none.
        flushed_files: a regular expression of the paths of files that are flushed by themselves; "" for any.
        files_move: whether a running node's files lag behind what it holds, or change by themselves. The final
            logs are then read after all nodes were killed.
        begins_flushed: whether nodes keep more than logs on their disks from their start on, such as who they are
            and which topics there are. That is flushed before a schedule begins: what a power loss takes is to be
            records alone.
        maps_log: whether its log is written by mapped files. What it has not flushed is then at the mercy of its
            disk: any error of that may take it, though no call of the node fails.
        deletes_later: whether the delete of a topic may take effect after it was acknowledged. Until then the
            topic is there, and cannot be created again.
        refuses_old_membership: whether a node that starts while its older membership stands ends at once; then
            the older one must be ended first.
        idempotence: whether it gives ids to idempotent producers, and heeds them.
        commit: which replicas have what is committed.
        promise: what each of them promises of what was acknowledged.
        one_group: whether each node has each partition, and one of them leads all.
        dense: whether each record has the offset after that of the record before it.
        first_offset: the offset of a log's first record.
        seen: how changes of the metadata are seen.
        names_controller: whether they name a controller.
        shows_members: whether they show which nodes are members.
        election_s: how long the system may take to have a leader again, in seconds; 0 for what scenarios allow.
        catch_up_s: how long replicas may take to catch up after the last heal, in seconds; 0 for what they allow.
    """

    metadata: str = "the metadata"
    named: str = ""
    models: str = ""
    emits_events: bool = False
    exact_order: bool = False
    tells_flushes: bool = True
    epochs: Epochs = Epochs.IN_RECORDS
    epochs_file: str = ""
    marks_file: str = ""
    clean_file: str = ""
    flushed_files: str = ""
    files_move: bool = False
    begins_flushed: bool = False
    maps_log: bool = False
    deletes_later: bool = False
    refuses_old_membership: bool = False
    idempotence: bool = False
    commit: Commit = Commit.IN_SYNC
    promise: Promise = Promise.MEMORY
    one_group: bool = False
    dense: bool = True
    first_offset: int = 0
    seen: Seen = Seen.WATCHED
    names_controller: bool = True
    shows_members: bool = True
    election_s: float = 0.0
    catch_up_s: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which scenarios name it, besides that of its protocol, the narrowest first."""
        return tuple(filter(None, (self.named, self.models, self.named.partition(":")[0])))

    @property
    def heal_s(self) -> float:
        """How long the system itself may take to be whole again, in seconds; 0 for what scenarios allow."""
        return self.election_s + self.catch_up_s

    def as_text(self) -> Mapping[str, str]:
        """Return name -> value of each trait, as a set-up records them."""
        return {each.name: _text(getattr(self, each.name)) for each in fields(self)}

    @staticmethod
    def of(text: Mapping[str, str]) -> Traits:
        """
        Return the traits that a set-up records.

        Raises:
            HistoryError: a name is no trait's, or a value is none of its trait; the text names both.
        """
        return Traits(**dict(_read(name, value) for name, value in text.items()))


def traits_of(setup: Setup) -> Traits:
    """
    Return the traits of the system that a run was played on.

    A set-up of before there were traits has those that the family of its target hands over: `traits` in its module
    `older`, below targets/.
    """
    if setup.traits is not None:
        return Traits.of(setup.traits)
    found = (older(setup) for older in _older())
    return next((traits for traits in found if traits is not None), Traits())


@cache
def _older() -> tuple[Callable[[Setup], Traits | None], ...]:
    return handed_over("older", "traits")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _read(name: str, value: str) -> tuple[str, Any]:
    read = _readers().get(name)
    if read is None:
        raise HistoryError(f"set-up: trait {name!r}; expected one of {', '.join(_readers())}")
    try:
        return name, read(value)
    except (KeyError, ValueError) as error:
        raise HistoryError(f"set-up: trait {name} is {value!r}; expected another kind of value") from error


@cache
def _readers() -> Mapping[str, Callable[[str], Any]]:
    """Return the name of each trait -> how its text is read."""
    hints = get_type_hints(Traits)
    return {
        each.name: _YES.__getitem__ if hints[each.name] is bool else hints[each.name] for each in fields(Traits)
    }

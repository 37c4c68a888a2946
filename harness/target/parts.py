"""
What a target must have, and what it may lack: read from the seam itself, so that no list of it grows old.

A part whose type in `Target` allows None is an ability, and None says that the target lacks it. All others must be
there. A method that a part leaves out is an ability too; a part that has none of its interface's is no such part.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

from harness.target.target import Target

_TEXT_MAX: Final = 200


def why_incomplete(target: object) -> str:
    """Return which part a target lacks although it must have it, or says it has it; "" if none."""
    for name in members(Target):
        try:
            getattr(target, name, None)
        except Exception as error:
            return f"part {name}: {type(error).__name__}: {error}; expected the part"
    optional = _optional()
    for name in members(Target):
        if name not in optional and not hasattr(target, name):
            return f"part {name}: not there; expected it, as {Target.__name__} in harness/target says"
    for name, interface in optional.items():
        part = getattr(target, name, None)
        names = [] if part is None or interface is None else list(members(interface))
        if names and not any(hasattr(part, each) for each in names):
            kind = type(part).__name__
            return f"part {name}: {kind} has none of {', '.join(names)}; expected some of them, or {name}=None"
    return _wrong_messages(getattr(target, "wire", None))


def _wrong_messages(wire: object) -> str:
    """Return what is wrong with a wire's own names of messages, which are to be words of scenarios."""
    names = getattr(wire, "messages", ())
    sound = isinstance(names, Collection) and not isinstance(names, str)
    if sound and all(isinstance(each, str) and each.isprintable() and each.split() == [each] for each in names):
        return ""
    return f"part wire: messages {names!r:.{_TEXT_MAX}}; expected a collection of words"


def abilities(target: object) -> Mapping[str, bool]:
    """Return each optional part of the seam, and whether this target has it; to need no download is no lack."""
    return {name: getattr(target, name, None) is not None for name in _optional() if name != "downloads"}


def members(interface: type) -> Iterator[str]:
    """Yield the names of an interface's attributes and methods, in order."""
    names: dict[str, Any] = {**inspect.get_annotations(interface), **vars(interface)}
    yield from (name for name in names if not name.startswith("_"))


@cache
def _optional() -> Mapping[str, type | None]:
    """Return the optional parts, each with its interface; None for a part that is no interface of ours."""
    found: dict[str, type | None] = {}
    hints = get_type_hints(Target)
    for name, member in vars(Target).items():
        if isinstance(member, property):
            hints[name] = get_type_hints(member.fget)["return"]
    for name, hint in hints.items():
        kinds = get_args(hint)
        if NoneType in kinds:
            ours = [kind for kind in kinds if isinstance(kind, type) and kind.__module__.startswith("harness.")]
            found[name] = ours[0] if ours else None
    return found

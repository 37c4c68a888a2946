"""Print which meaning each target gives the words of scenarios, from the targets' own tables."""

from __future__ import annotations

from collections.abc import Sequence

from harness.docs import markdown
from harness.target.found import found
from harness.target.target import Target
from harness.target.wire import Stands, Word
from harness.target.words import OF_TARGETS, Lacks, Means


def words() -> Sequence[str]:
    """Return the parts of a section: the words for messages, and those about a target's state and its operator."""
    targets: list[Target] = [each.load() for each in found().values() if each.module]
    names = [target.name for target in targets]
    messages = [(f"`{word}`", *(_message(each, word) for each in targets)) for word in Word]
    others = [(f"`{word}`", *(_shown(each.words[word]) for each in targets)) for word in OF_TARGETS]
    return (
        "What stands for the words for messages on each target's wire. Messages for which there is no general "
        "word keep\nthe system's own names, and a rule of links may name them too.",
        markdown.table(("message", *names), messages),
        "What stands for the words about a target's state, and for what its operator can ask:",
        markdown.table(("word", *names), others),
    )


def _shown(meaning: Means | Lacks) -> str:
    return meaning.text if isinstance(meaning, Means) else f"nothing: {meaning.why}"


def _message(target: Target, word: Word) -> str:
    """Return what stands for a word for messages: one thing for all versions, or each with its versions."""
    if target.wire is None:
        return "nothing: its connections are not read"
    meanings: dict[str, list[str]] = {}
    for name, rules in target.protocols().items():
        meanings.setdefault(_own(target.wire.stands(rules).get(word)), []).append(name)
    if len(meanings) == 1:
        return next(iter(meanings))
    return "; ".join(f"{text}: {', '.join(names)}" for text, names in meanings.items())


def _own(stands: Stands | None) -> str:
    if stands is None:
        return "nothing"
    return stands.own if stands.api else f"nothing: {stands.own}"

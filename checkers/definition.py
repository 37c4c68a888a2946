"""What a kind of anomaly is: each rule defines the kinds that it finds; docs/checkers.md is printed from them."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """
    What a kind of anomaly is, for docs/checkers.md; each rule defines the kinds that it finds, beside its code.

    Attributes:
        formula: the condition over events, in the notation that docs/checkers.md explains.
        words: the same in words: one or two sentences.
        evidence: the events that the rule reads.
        unchecked: what makes the rule unable to decide, and what it then returns; "" if nothing does.
        source: the document or issue that states it.
    """

    kind: Kind
    formula: str
    words: str
    evidence: str
    unchecked: str
    source: str

"""Variants: one text for each, the names by which scenarios name them, and their expectations."""

from __future__ import annotations

import pytest

from harness.model import UsageError
from harness.scenario.variant import Variant, expectation_of
from harness.target.traits import Traits

FENCELESS = Variant(protocol="kip320", changes=("fence_fetch=no",))


def test_text_and_variant_are_one() -> None:
    assert "kip320+fence_fetch=no" == str(FENCELESS)
    assert FENCELESS == Variant.parse(" kip320+fence_fetch=no ", "here")
    assert Variant(protocol="2.0.1") == Variant.parse("2.0.1", "here")
    assert "2.1.1+inter.broker.protocol.version=1.1" == str(
        Variant.parse("2.1.1+inter.broker.protocol.version=1.1", "here")
    )


def test_order_of_changes_makes_no_other_variant() -> None:
    assert Variant.parse("kip320+b=no+a=no", "here") == Variant.parse("kip320+a=no+b=no", "here")


def test_old_name_of_a_rule_means_the_same_variant() -> None:
    """The old name is accepted for one release."""
    old, new = (f"kip380+a=no+{name}=no+g=no" for name in ("bounce_seen", "fence_broker_epoch"))
    assert Variant.parse(new, "here") == Variant.parse(old, "here")
    assert "kip380+a=no+fence_broker_epoch=no+g=no" == str(Variant.parse(old, "here"))


@pytest.mark.parametrize("text", ["", "kip320+fence", "kip 320", "+a=no"])
def test_text_that_is_none_is_told(text: str) -> None:
    with pytest.raises(UsageError, match=r"x\.txt:4: .*; expected PROTOCOL or PROTOCOL"):
        Variant.parse(text, "x.txt:4")


def test_mutant_is_meant_by_its_own_name_and_by_its_protocols() -> None:
    assert ("kip320+fence_fetch=no", "kip320") == FENCELESS.names(Traits())


def test_release_is_meant_by_the_protocol_that_it_corresponds_to() -> None:
    assert ("2.1.1", "kip320") == Variant(protocol="2.1.1").names(Traits(models="kip320"))


def test_release_is_meant_by_its_full_name_and_by_that_of_its_system() -> None:
    traits = Traits(models="kip320", named="kafka:2.1.1")
    assert ("2.1.1", "kafka:2.1.1", "kip320", "kafka") == Variant(protocol="2.1.1").names(traits)


@pytest.mark.parametrize(
    ("text", "traits", "found"),
    [
        ("kip320", Traits(), "kip320"),
        ("kip320+fence_fetch=no", Traits(), "kip320+fence_fetch=no"),
        ("kip320+fence_isr_join=no", Traits(), None),
        ("2.1.1", Traits(models="kip320"), "kip320"),
        ("0.10.2", Traits(models="hw"), None),
        ("2.1.1", Traits(models="kip320", named="kafka:2.1.1"), "kip320"),
        ("2.0.1", Traits(models="kip320", named="kafka:2.0.1"), "kafka:2.0.1"),
    ],
)
def test_expectation_is_the_variants_own_or_that_of_what_a_release_models(
    text: str, traits: Traits, found: str | None
) -> None:
    expectations = ("kip320", "kip320+fence_fetch=no", "kafka:2.0.1")
    assert found == expectation_of(Variant.parse(text, "here"), traits, expectations)

"""The numbers of an idempotent producer's batches: they follow each other, and begin anew after a doubt."""

from __future__ import annotations

from harness.workload.numbering import EPOCH_MAX, SEQUENCES, Numbering
from harness.workload.plan import Place

LOG, OTHER = Place("log", 0), Place("log", 1)


def test_sequences_count_the_records_of_each_partition() -> None:
    """Source: KIP-98: a sequence per producer id and partition."""
    numbering = Numbering()
    assert not numbering.has_id
    numbering.begin(7, 0)
    found = [numbering.number(place, count) for place, count in ((LOG, 3), (OTHER, 2), (LOG, 1), (LOG, 1))]
    assert [(7, 0, 0), (7, 0, 0), (7, 0, 3), (7, 0, 4)] == found


def test_sequence_after_the_last_one_is_0() -> None:
    numbering = Numbering()
    numbering.begin(7, 0)
    numbering.number(LOG, SEQUENCES - 1)
    assert [SEQUENCES - 1, 1] == [numbering.number(LOG, 2).sequence for _ in range(2)]


def test_doubt_ends_an_epoch_and_after_the_last_one_the_id() -> None:
    """Source: KIP-360."""
    numbering = Numbering()
    numbering.begin(7, EPOCH_MAX - 1)
    numbering.number(LOG, 3)
    numbering.doubt()
    assert (7, EPOCH_MAX, 0) == numbering.number(LOG, 1)
    numbering.doubt()
    assert not numbering.has_id

"""The page of citations: every citation of the tests is read, and every step of KIP-101 is cited."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from harness.docs import coverage_page
from harness.docs.coverage_page import (
    ISSUES,
    KIP_101,
    OTHER_KIPS,
    REST,
    THEIR_TESTS,
    V3,
    Citation,
    citations,
    cited,
)

# What V3 numbers or names. Left out: E 5, the queue in ZooKeeper, as docs/design-v3.md says.
POINTS_OF_V3 = [
    *(f"Paths {number}" for number in range(1, 7)),
    *("LeaderAndISRRequest", "LeaderAndISRResponse", "StopReplicaRequest", "StopReplicaResponse"),
    *("A 1", "A 2", "A 3.1", "A 3.2", "A 3.3", "A 4"),
    *("on_topic_change 1", "on_topic_change 2", "init_leaders 1.1", "init_leaders 1.2", "init_leaders 2"),
    *("C 2.0", "C 2.1", "C 2.2", "C 3", "becomeLeader", "becomeFollower", "startReplica", "stopReplica"),
    *(f"D {number}" for number in range(1, 10)),
    *("E 1", "E 2", "E 3.1", "E 3.2", "E 3.3", "E 4", "F 1", "F 2", "F 3"),
    *("G", "ReplicaFetchRequest", "maybe_change_ISR", "on_partitions_add", "on_partitions_remove"),
    *(f"discussion {number}" for number in range(1, 9)),
    "optimizations 1",
]
SECTIONS_OF_KIP_101 = [
    *("Motivation", "Scenario 1", "Scenario 2", "returning leaders", "Maintaining the LeaderEpochSequenceFile"),
    *("Unclean Shutdown", "Public Interfaces", "Request Semantics 1", "Request Semantics 2", "Compatibility"),
    *("migration", "footnote to step 3", "Rejected Alternatives", "Appendix"),
]
MODULE = '''
"""
Everything.

Source:  KIP-380.
"""

class TestIt:
    """Source: KAFKA-1."""

    def test_a(self):
        """
        It holds.

        Source: KIP-101, steps 4.1 and 4.2: "as; it says".
                KAFKA-2. It is long ago.
        Raises: nothing.

        KAFKA-3 is no source.
        """

def test_b(): ...
'''


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("KIP-101 step 4.3, Request Semantics 1.", [(KIP_101, "step 4.3"), (KIP_101, "Request Semantics 1")]),
        ("KIP-101 4.4: the file.", [(KIP_101, "step 4.4")]),
        ("KIP-101, the footnote to step 3.", [(KIP_101, "footnote to step 3")]),
        ("KIP-101, Motivation, Scenario 2, played.", [(KIP_101, "Motivation"), (KIP_101, "Scenario 2")]),
        ("KIP-101, returning leaders", [(KIP_101, "returning leaders")]),
        ("KIP-101: 'it is'.", [(KIP_101, "")]),
        (f'{V3}, C 2.2: "and the broker"; KAFKA-7164 is its bug.', [(V3, "C 2.2"), (ISSUES, "KAFKA-7164")]),
        (f"{V3}, D 1 and 2, and becomeLeader.", [(V3, "D 1"), (V3, "D 2"), (V3, "becomeLeader")]),
        (
            "KIP-101, Maintaining the LeaderEpochSequenceFile",
            [(KIP_101, "Maintaining the LeaderEpochSequenceFile")],
        ),
        ("KIP-279, KIP-320.", [(OTHER_KIPS, "KIP-279"), (OTHER_KIPS, "KIP-320")]),
        (
            "Kafka PartitionTest, testIsr (I1); UnifiedLogTest.",
            [(THEIR_TESTS, "PartitionTest"), (THEIR_TESTS, "UnifiedLogTest")],
        ),
        ("Kafka, LogManager.asyncDelete; half of it.", [(REST, "Kafka, LogManager.asyncDelete")]),
    ],
)
def test_entry_is_read_as_documents_and_sections(entry: str, found: list[tuple[str, str]]) -> None:
    assert found == cited(entry)


def test_modules_classes_and_functions_cite(tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "test_m.py").write_text(MODULE.strip(), encoding="utf-8")
    place = "broker/test_m.py"
    assert [
        Citation(OTHER_KIPS, "KIP-380", place),
        Citation(ISSUES, "KAFKA-1", f"{place}::TestIt"),
        Citation(KIP_101, "step 4.1", f"{place}::TestIt::test_a"),
        Citation(KIP_101, "step 4.2", f"{place}::TestIt::test_a"),
        Citation(ISSUES, "KAFKA-2", f"{place}::TestIt::test_a"),
    ] == citations(tmp_path)


@cache
def of_tests() -> Sequence[Citation]:
    return citations(coverage_page.ROOT / coverage_page.TESTS)


def test_every_entry_of_the_tests_is_on_the_page() -> None:
    # test_pages.py holds that the page is as it would be printed.
    page = (coverage_page.ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    found = of_tests()
    assert len(found) > 400
    assert [] == [each for each in found if f"| {each.section or 'as a whole'} | `{each.test}` |" not in page]


@pytest.mark.parametrize("step", ["1", "2", "3", "4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7.1", "4.7.2"])
def test_every_step_of_kip_101_is_cited(step: str) -> None:
    found = [each.test for each in of_tests() if (each.document, each.section) == (KIP_101, f"step {step}")]
    assert [test for test in found if test.startswith("broker/")]


@pytest.mark.parametrize("document", [V3, KIP_101])
def test_every_point_and_section_is_cited(document: str) -> None:
    found = {each.section for each in of_tests() if each.document == document}
    expected = POINTS_OF_V3 if document == V3 else SECTIONS_OF_KIP_101
    assert [] == [point for point in expected if point not in found]

"""
The same schedules on the oldest release and on our broker under the protocol that the release corresponds to.

Source: KIP-101, Motivation: on both, the schedule of seed 1 loses acknowledged records. It begins with a follower
that has not received the last high watermark, follows another leader, and is elected itself.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.history.file import read_history
from harness.model import EXIT_CODES, OpType, Source
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.profile import REAL
from harness.search.pairing_progress import PairingProgress
from targets.kafka.fetch import default_source, fetch
from targets.kafka.jars import cache_dir
from targets.kafka.releases import release_of
from tests.faults import NEMESES
from tests.kept import exhaustive, keep
from tests.needs import needs

RELEASE = "0.10.2.2"

pytestmark = [pytest.mark.kafka, pytest.mark.slow, needs(f"kafka-{RELEASE}")]
# The first seed and how many: each costs a run on both, about half a minute.
SEEDS = [pytest.param(1, 1, id="one"), pytest.param(0, 2, id="two")]


@exhaustive
@pytest.mark.parametrize(("first_seed", "count"), keep(SEEDS, "one"))
def test_seeds_play_on_both_bite_on_both_and_are_not_played_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first_seed: int, count: int
) -> None:
    words = ["run", "--host", "local", "--target", f"kafka:{RELEASE}", "--compare-with", "hw"]
    words += ["--seed", str(first_seed), "--seeds", str(count), "--jobs", "2", "--results", str(tmp_path)]
    codes = (EXIT_CODES["valid"], EXIT_CODES["invalid"], EXIT_CODES["unknown"])
    first = main(words)
    assert first in codes
    (folder,) = tmp_path.glob("conform-*")
    summary = json.loads((folder / "summary.json").read_text())
    assert count == summary["seeds"]
    progress = PairingProgress(folder, json.loads((folder / "conform.json").read_text()))
    for side in ("ours", "theirs"):
        assert sum(fault["bit"] for fault in summary["faults"][side].values()) > 0
        assert summary["elections"][side] > 0
        for seed in range(first_seed, first_seed + count):
            run = progress.run_of(progress.played[side, seed])
            # The final reads are in the history, whatever the schedule did.
            ops = read_history(run.history)
            assert {"healed", "done"} <= {op.f for op in ops if op.source is Source.RUNNER}
            assert [op for op in ops if op.source is Source.LOG and op.type is OpType.OK]
            steps = [op.value["text"] for op in ops if op.f == "step" and op.value["line"]]
            drawn = [step.text for step in draw_schedule(seed, NEMESES, REAL).steps]
            assert {text for text in drawn if text} == {text for text in steps if text in drawn}
    # Every run was played before: the second call judges them again, and starts no run.
    capsys.readouterr()
    assert first == main(words)
    assert f"{2 * count} runs of {2 * count} played before" in capsys.readouterr().out
    assert not (folder / "play-2").exists()


@exhaustive
def test_partitions_move_and_topics_come_again_on_both(tmp_path: Path) -> None:
    """Source: KIP-455 and KIP-516, Motivation: nothing that was acknowledged is lost by either."""
    newest = "3.9.1"
    fetch([release_of(newest)], cache_dir(), default_source(), print)
    words = ["run", "--host", "local", "--target", f"kafka:{newest}", "--compare-with", "kip380"]
    words += ["--workload", "topics", "--nemesis", "all,move-away", "--seed", "2", "--results", str(tmp_path)]
    main(words)
    (folder,) = tmp_path.glob("conform-*")
    summary = json.loads((folder / "summary.json").read_text())
    assert {"ours": 0, "theirs": 0} == summary["invalid"]
    for side in ("ours", "theirs"):
        assert summary["faults"][side]["move-away"]["bit"] > 0
        assert summary["replicas moved"][side] > 0


@exhaustive
def test_time_on_a_release_ends_with_a_tally_of_what_was_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "run",
        "--host",
        "local",
        "--target",
        f"kafka:{RELEASE}",
        "--nemesis",
        "kill,elect",
        "--time",
        "1",
        "--fresh",
    ]
    code = main([*words, "--seed", "3", "--jobs", "1", "--results", str(tmp_path)])
    printed = capsys.readouterr().out
    assert code in (EXIT_CODES[word] for word in ("valid", "unknown", "invalid", "hang"))
    assert "1 seeds: " in printed
    assert "seed-3-0.10.2.2" in printed

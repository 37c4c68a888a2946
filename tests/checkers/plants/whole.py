"""Histories that are not whole, or that contradict themselves; the lawful twins change what proves nothing."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant

UNKNOWN = Kind.UNCHECKED


# --- completions and invokes -----------------------------------------------------------------------------------
@plant("whole-half-of-the-oks-gone", "local-kip101-1", UNKNOWN)
def half_of_the_oks(edit: Edit) -> None:
    """Drop every second ok of a record."""
    edit.drop(*edit.all(Source.CLIENT, "produce", type="ok")[::2])


@plant("whole-half-of-the-oks-gone-lawful", "local-kip101-1")
def half_of_the_oks_lawful(edit: Edit) -> None:
    """The whole run: every invoke has its ok."""


@plant("whole-ok-without-invoke", "sim-clean", UNKNOWN)
def ok_without_invoke(edit: Edit) -> None:
    """Drop the invoke of a record that was acknowledged."""
    edit.drop(edit.find(Source.CLIENT, "produce", type="invoke"))


@plant("whole-read-without-invoke", "kafka-kip101-1", UNKNOWN)
def read_without_invoke(edit: Edit) -> None:
    """Drop the invoke of the final read."""
    edit.drop(edit.find(Source.CLIENT, "read", type="invoke"))


@plant("whole-fault-without-invoke", "local-kip101-1", UNKNOWN)
def fault_without_invoke(edit: Edit) -> None:
    """Drop the invoke of a kill."""
    edit.drop(edit.find(Source.NEMESIS, "kill", type="invoke"))


@plant("whole-ok-of-other-acks", "sim-clean", UNKNOWN)
def ok_of_other_acks(edit: Edit) -> None:
    """Let an acknowledgement have fewer acks than were asked for."""
    edit.change(edit.find(Source.CLIENT, "produce", type="ok"), acks=1)


@plant("whole-fault-never-ends", "kafka-kip101-1", UNKNOWN)
def fault_never_ends(edit: Edit) -> None:
    """Drop the end of a power loss."""
    edit.drop(edit.find(Source.NEMESIS, "power-loss", type="ok"))


@plant("whole-two-oks-of-one-invoke", "local-kip101-1", UNKNOWN)
def two_oks(edit: Edit) -> None:
    """Acknowledge one record twice."""
    edit.again(edit.find(Source.CLIENT, "produce", type="ok"))


@plant("whole-unacked-lawful", "local-kip101-1")
def unacked_lawful(edit: Edit) -> None:
    """Let the answer to a record be lost: whether it happened is not known, which is an outcome."""
    ok = edit.find(Source.CLIENT, "produce", type="ok")
    del ok["value"]["offset"]
    ok["type"] = "info"
    edit.change(ok, error="no answer in time")


# --- events and keys that no reader knows ----------------------------------------------------------------------
@plant("whole-unknown-event", "local-kip101-1", UNKNOWN)
def unknown_event(edit: Edit) -> None:
    """Let a broker report an event that nobody knows."""
    edit.insert(edit.find(Source.BROKER, "leader"), Source.BROKER, "compacted", "B", topic="log", partition=0)


@plant("whole-unknown-key", "sim-clean", UNKNOWN)
def unknown_key(edit: Edit) -> None:
    """Give an append a key that nobody knows."""
    edit.change(edit.find(Source.BROKER, "append"), discarded=2)


@plant("whole-number-in-words", "kafka-kip101-1", UNKNOWN)
def number_in_words(edit: Edit) -> None:
    """Write an epoch as a string."""
    edit.change(edit.find(Source.METADATA, "state"), epoch="0")


@plant("whole-true-for-one", "local-kip101-1", UNKNOWN)
def true_for_one(edit: Edit) -> None:
    """Write an offset as a boolean."""
    edit.change(edit.find(Source.CLIENT, "produce", type="ok", nth=1), offset=True)


@plant("whole-float-for-integer", "sim-clean", UNKNOWN)
def float_for_integer(edit: Edit) -> None:
    """Write a high watermark as a float."""
    edit.change(edit.find(Source.BROKER, "high-watermark"), to=2.0)


@plant("whole-unknown-effect", "local-kip101-1", UNKNOWN)
def unknown_effect(edit: Edit) -> None:
    """Give a fault an effect that nobody knows."""
    for line in edit.all(Source.NEMESIS, "kill"):
        edit.change(line, effect="melted")


@plant("whole-optional-key-lawful", "local-kip101-1")
def optional_key_lawful(edit: Edit) -> None:
    """Leave out keys that older histories do not have."""
    for line in edit.all(Source.BROKER, "member"):
        del line["value"]["incarnation"]
    for key in ("again", "changes", "schedule"):
        del edit.lines[0]["value"][key]


# --- what was not seen -----------------------------------------------------------------------------------------
@plant("whole-unreadable-line", "local-kip101-1", UNKNOWN)
def unreadable_line(edit: Edit) -> None:
    """Let the collector fail to read a broker's line."""
    edit.insert(
        edit.find(Source.BROKER, "leader"),
        Source.RUNNER,
        "unreadable",
        "collector",
        "fail",
        error="'{x': expected",
    )


@plant("whole-unreadable-frame", "kafka-kip101-1", UNKNOWN)
def unreadable_frame(edit: Edit) -> None:
    """Let the fabric fail to read a fetch."""
    link = {"link": ["A", "B"], "api": "fetch", "version": 99, "direction": "request", "error": "too short"}
    edit.insert(edit.find(Source.FABRIC, "fetch"), Source.FABRIC, "unreadable", "fabric", **link)


@plant("whole-silent-broker", "sim-clean", UNKNOWN)
def silent_broker(edit: Edit) -> None:
    """Drop all that one broker reported."""
    edit.drop(*[line for line in edit.lines if (line["source"], line["process"]) == ("broker", "D")])


@plant("whole-before-started", "local-kip101-1", UNKNOWN)
def before_started(edit: Edit) -> None:
    """Drop the first start of a broker."""
    edit.drop(edit.find(Source.BROKER, "started", "A"))


@plant("whole-strange-node", "kafka-kip101-1", UNKNOWN)
def strange_node(edit: Edit) -> None:
    """Let the ISR have a node that the run does not have."""
    edit.change(edit.find(Source.METADATA, "members", nth=-1), nodes=["A", "B", "C", "Z"])


@plant("whole-acks-0-alone", "sim-clean", UNKNOWN, Kind.VACUOUS)
def acks_0_alone(edit: Edit) -> None:
    """Let no record have asked for an acknowledgement that promises anything."""
    for line in edit.all(Source.CLIENT, "produce"):
        edit.change(line, acks=0)


@plant("whole-last-read-failed", "local-kip101-1", UNKNOWN)
def last_read_failed(edit: Edit) -> None:
    """Read once more, and fail."""
    ok = edit.find(Source.CLIENT, "read", type="ok")
    invoke = edit.again(edit.find(Source.CLIENT, "read", type="invoke"), after=ok)
    failed = edit.again(invoke, error="no leader")
    failed["type"] = "fail"


@plant("whole-last-read-succeeded-lawful", "local-kip101-1")
def last_read_succeeded(edit: Edit) -> None:
    """Read once before, fail, and then succeed."""
    first = edit.find(Source.CLIENT, "read", type="invoke")
    before = edit.find(Source.RUNNER, "healed")
    invoke = edit.again(first, after=before)
    failed = edit.again(invoke, error="no leader")
    failed["type"] = "fail"


@plant("whole-two-ends", "sim-clean", UNKNOWN)
def two_ends(edit: Edit) -> None:
    """End the run twice."""
    edit.again(edit.find(Source.RUNNER, "done"))


@plant("whole-read-after-end", "kafka-kip101-1", UNKNOWN)
def read_after_end(edit: Edit) -> None:
    """Move the end of the run before its last snapshot."""
    edit.move(edit.find(Source.RUNNER, "done"), after=edit.find(Source.RUNNER, "healed"))


@plant("whole-flush-after-end-lawful", "local-kip101-1")
def flush_after_end_lawful(edit: Edit) -> None:
    """Let a broker flush while it is taken down."""
    marks = edit.all(Source.BROKER, "flush", path="replication-offset-checkpoint")
    edit.move(marks[-1], after=edit.find(Source.RUNNER, "done"))


# --- one broker's story ----------------------------------------------------------------------------------------
@plant("chain-append-missing", "local-kip101-1", UNKNOWN, Kind.WRONG_HIGH_WATERMARK)
def append_missing(edit: Edit) -> None:
    """Drop a follower's append."""
    edit.drop(edit.find(Source.BROKER, "append", role="follower"))


@plant("chain-restart-keeps-less", "local-kip101-1", UNKNOWN)
def restart_keeps_less(edit: Edit) -> None:
    """Let a broker that was killed find less than it had written, and report that from then on."""
    edit.change(edit.find(Source.BROKER, "recovered", "B"), log_end_offset=3, high_watermark=3)
    edit.change(edit.find(Source.BROKER, "follower", "B"), log_end_offset=3, high_watermark=3)
    edit.change(edit.find(Source.BROKER, "truncate", "B"), **{"from": 3}, to=3, end=3)


@plant("chain-epoch-of-an-append", "sim-clean", Kind.TWO_LEADERS)
def epoch_of_an_append(edit: Edit) -> None:
    """Let a leader append in an epoch that it does not lead."""
    edit.change(edit.find(Source.BROKER, "append", role="leader", nth=1), epoch=3)


@plant("chain-started-twice", "sim-clean", UNKNOWN)
def started_twice(edit: Edit) -> None:
    """Let a process start that nothing had taken down."""
    edit.again(edit.find(Source.BROKER, "started", "A"), after=edit.find(Source.BROKER, "append", "A"))


@plant("chain-power-loss-keeps-less-lawful", "local-kip101-2", Kind.PERMITTED)
def power_loss_lawful(edit: Edit) -> None:
    """The power loss of the real run takes what was not flushed."""


# --- the harness's own story -----------------------------------------------------------------------------------
@plant("links-held-without-hold", "sim-clean", UNKNOWN)
def held_without_hold(edit: Edit) -> None:
    """Drop the rule that held a frame."""
    edit.drop(edit.find(Source.FABRIC, "hold"))


@plant("links-answer-without-question", "local-kip101-1", UNKNOWN)
def answer_without_question(edit: Edit) -> None:
    """Drop a follower's question where an epoch ends."""
    edit.drop(edit.find(Source.FABRIC, "epoch-question"))


@plant("links-question-without-answer-lawful", "local-kip101-1")
def question_without_answer_lawful(edit: Edit) -> None:
    """Ask once more, and get no answer, as when the leader dies."""
    edit.again(edit.find(Source.FABRIC, "epoch-question"))

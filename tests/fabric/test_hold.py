"""A held frame stops all frames behind it, and they go on in order; on real sockets over loopback."""

from __future__ import annotations

from contextlib import suppress

import pytest

from harness.fabric.limits import HELD_BYTES_MAX
from harness.model import PreconditionError
from tests.fabric.nodes import WAIT_S, World
from tests.targets.kafka_family.wire import wire

# The held bytes, plus what the kernel may buffer for both sockets.
SENT_BYTES_MAX = 8 * HELD_BYTES_MAX


def test_frames_pass_unchanged_both_ways_when_nothing_is_held(net: World) -> None:
    near, far = net.connect()
    frames = [wire.fetch(1), wire.request(4, 1, 2, "1", b"body"), wire.epoch_question(0), wire.frame(b"?")]
    near.send(*frames)
    far.expect(*frames)
    answers = [wire.answer(1, b"records"), wire.answer(2), wire.epoch_answer(0), wire.frame(b"odd")]
    far.send(*answers)
    near.expect(*answers)


def test_held_request_stops_all_behind_it_until_it_is_released(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("epoch-question", "A", "B", "request")
    before, held, behind = wire.fetch(1, correlation=1), wire.epoch_question(0), wire.fetch(2, correlation=3)
    near.send(before, held, behind)
    frame = hold.wait(WAIT_S)
    assert (("A", "B"), "epoch-question", "request", None) == (
        frame.link,
        frame.api,
        frame.direction.value,
        frame.offset,
    )
    far.expect(before)
    assert far.silent()
    net.fabric.release(hold)
    far.expect(held, behind)


def test_held_answer_is_chosen_by_the_fetch_offset_of_its_request(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("fetch", "A", "B", "answer", from_offset=5)
    for correlation, offset in ((1, 3), (2, 4), (3, 5), (4, 6)):
        near.send(wire.fetch(offset, correlation=correlation))
        far.expect(wire.fetch(offset, correlation=correlation))
    far.send(*(wire.answer(correlation, b"data") for correlation in (1, 2, 3, 4)))
    assert 5 == hold.wait(WAIT_S).offset
    near.expect(wire.answer(1, b"data"), wire.answer(2, b"data"))
    assert near.silent()
    net.fabric.release(hold)
    near.expect(wire.answer(3, b"data"), wire.answer(4, b"data"))


def test_hold_lets_other_links_and_directions_pass(net: World) -> None:
    a_near, a_far = net.known("broker-1-fetcher")
    b_near, b_far = net.known("broker-2-fetcher")
    hold = net.fabric.hold("fetch", "A", "B", "request")
    a_near.send(wire.fetch(1))
    hold.wait(WAIT_S)
    b_near.send(wire.fetch(1, client_id="broker-2-fetcher", replica_id=2))
    b_far.expect(wire.fetch(1, client_id="broker-2-fetcher", replica_id=2))
    a_far.send(wire.answer(9))
    a_near.expect(wire.answer(9))
    assert a_far.silent()


def test_hold_takes_a_connections_first_request(net: World) -> None:
    hold = net.fabric.hold("fetch", "A", "B", "request")
    near, far = net.connect()
    near.send(wire.fetch(7))
    assert 7 == hold.wait(WAIT_S).offset
    assert far.silent()


def test_frame_passes_from_one_hold_to_the_next_when_both_are_about_it(net: World) -> None:
    near, far = net.known()
    first = net.fabric.hold("fetch", "A", "B", "request")
    second = net.fabric.hold("*", "A", "*", "request")
    near.send(wire.fetch(1))
    first.wait(WAIT_S)
    net.fabric.release(first)
    second.wait(WAIT_S)
    assert far.silent()
    net.fabric.release_all()
    far.expect(wire.fetch(1))


def test_hold_says_what_passed_when_it_held_nothing(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("fetch", "A", "B", "request", from_offset=5)
    near.send(wire.fetch(4))
    far.expect(wire.fetch(4))
    with pytest.raises(PreconditionError, match=r"fetch request on A->B \(last at offset 4\)"):
        hold.wait(0.0)


def test_hold_is_recorded_with_what_it_held_and_its_release(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("fetch", "A", "B", "request", from_offset=5)
    near.send(wire.fetch(6))
    hold.wait(WAIT_S)
    net.fabric.release(hold)
    net.fabric.release(hold)
    far.expect(wire.fetch(6))
    pattern = {"link": ["A", "B"], "api": "fetch", "direction": "request", "from_offset": 5}
    assert [
        ("hold", pattern),
        ("held", {"link": ["A", "B"], "api": "fetch", "direction": "request", "offset": 6}),
        ("release", pattern),
        ("fetch", {"link": ["A", "B"], "topic": "t", "partition": 0, "offset": 6}),
    ] == net.record


def test_drop_resets_the_connection_and_its_frame_never_arrives(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("fetch", "A", "B", "request")
    near.send(wire.fetch(6))
    hold.wait(WAIT_S)
    net.fabric.drop(hold)
    near.expect_reset()
    far.expect_reset()
    assert ["its hold was dropped"] == [value["reason"] for value in net.values("dropped")]
    assert [] == net.values("fetch")
    again, far_again = net.known()
    again.send(wire.fetch(6))
    far_again.expect(wire.fetch(6))


def test_drop_leaves_other_connections_alone(net: World) -> None:
    near, _ = net.known()
    other, other_far = net.known("broker-2-fetcher")
    hold = net.fabric.hold("fetch", "A", "B", "request")
    near.send(wire.fetch(6))
    hold.wait(WAIT_S)
    net.fabric.drop(hold)
    other.send(wire.request(18, 0, 5, "broker-2-fetcher"))
    other_far.expect(wire.request(18, 0, 5, "broker-2-fetcher"))


def test_questions_and_answers_are_witnessed_only_when_they_go_on(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("epoch-question", "A", "B", "answer")
    near.send(wire.epoch_question(0, epoch=4))
    far.expect(wire.epoch_question(0, epoch=4))
    far.send(wire.epoch_answer(0, end=21))
    hold.wait(WAIT_S)
    about = {"link": ["A", "B"], "topic": "t", "partition": 0}
    assert [{**about, "leader_epoch": 4, "version": 0}] == net.values("epoch-question")
    assert [] == net.values("epoch-answer")
    net.fabric.release(hold)
    assert [{**about, "error": 0, "leader_epoch": -1, "end_offset": 21}] == net.values("epoch-answer")


def test_source_is_read_no_more_when_too_much_waits_behind_a_hold(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("fetch", "A", "B", "request")
    near.send(wire.fetch(1))
    hold.wait(WAIT_S)
    near.sock.setblocking(False)
    produce = wire.request(0, 3, 2, "broker-1-fetcher", b"x" * 60_000)
    sent = 0
    # Every call below gives the fabric a turn, in which it would read at least one frame if it were still reading.
    for _ in range(2000):
        with suppress(BlockingIOError):
            while sent < SENT_BYTES_MAX:
                sent += near.sock.send(produce[sent % len(produce) :])
        net.fabric.connections("A", "B")
    assert HELD_BYTES_MAX < sent < SENT_BYTES_MAX
    net.fabric.release(hold)
    far.expect(wire.fetch(1), produce * (sent // len(produce)))


def test_delayed_frame_goes_on_and_is_not_overtaken(net: World) -> None:
    near, far = net.known()
    delay = net.fabric.delay("fetch", "A", "B", "request", 0.05)
    near.send(wire.fetch(1), wire.request(3, 1, 2, "1"))
    far.expect(wire.fetch(1), wire.request(3, 1, 2, "1"))
    net.fabric.heal(delay)
    long = net.fabric.delay("fetch", "A", "B", "request", 3600.0)
    near.send(wire.request(3, 1, 3, "1"), wire.fetch(2))
    far.expect(wire.request(3, 1, 3, "1"))
    assert far.silent()
    net.fabric.heal(long)
    far.expect(wire.fetch(2))
    assert [0.05, 3600.0] == [value["seconds"] for value in net.values("delay")]
    late = {"link": ["A", "B"], "api": "fetch", "direction": "request"}
    assert [{**late, "offset": 1}, {**late, "offset": 2}] == net.values("delayed")

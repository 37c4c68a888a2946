"""A doubled request arrives twice, and its sender receives one answer; on real sockets over loopback."""

from __future__ import annotations

from harness.fabric.limits import WHOLE_BYTES_MAX
from tests.fabric.nodes import WAIT_S, World
from tests.targets.kafka_family.wire import wire

COMMAND = wire.request(4, 1, 7, "1", b"body")
OTHER = wire.request(6, 1, 8, "1", b"body")


def test_doubled_request_arrives_twice_and_one_answer_goes_back(net: World) -> None:
    near, far = net.known("1")
    net.fabric.double("command", "A", "B")
    near.send(COMMAND, OTHER)
    far.expect(COMMAND, COMMAND, OTHER)
    far.send(wire.answer(7, b"first"), wire.answer(7, b"second"), wire.answer(8))
    near.expect(wire.answer(7, b"first"), wire.answer(8))


def test_second_answer_is_swallowed_to_its_last_byte_when_it_is_streamed(net: World) -> None:
    near, far = net.known("1")
    net.fabric.double("command", "A", "B")
    near.send(COMMAND, OTHER)
    far.expect(COMMAND, COMMAND, OTHER)
    large = wire.answer(7, b"x" * (2 * WHOLE_BYTES_MAX))
    far.send(large, large, wire.answer(8))
    near.expect(large, wire.answer(8))


def test_doubling_takes_no_other_api_or_link_and_ends_when_it_is_healed(net: World) -> None:
    near, far = net.known("1")
    double = net.fabric.double("command", "B", "A")
    near.send(COMMAND)
    far.expect(COMMAND)
    assert 0 == double.frames_doubled
    mine = net.fabric.double("command", "A", "B")
    near.send(COMMAND)
    far.expect(COMMAND, COMMAND)
    net.fabric.heal(mine)
    near.send(COMMAND, OTHER)
    far.expect(COMMAND, OTHER)
    assert far.silent()
    assert 1 == mine.frames_doubled


def test_held_request_is_doubled_when_it_is_released(net: World) -> None:
    near, far = net.known("1")
    hold = net.fabric.hold("command", "A", "B", "request")
    net.fabric.double("command", "A", "B")
    near.send(COMMAND)
    hold.wait(WAIT_S)
    assert far.silent()
    net.fabric.release(hold)
    far.expect(COMMAND, COMMAND)


def test_request_that_is_streamed_goes_on_once(net: World) -> None:
    near, far = net.known("1")
    double = net.fabric.double("command", "A", "B")
    large = wire.request(4, 1, 7, "1", b"x" * (2 * WHOLE_BYTES_MAX))
    near.send(large, OTHER)
    far.expect(large, OTHER)
    assert 0 == double.frames_doubled


def test_zookeeper_packet_goes_on_once(net: World) -> None:
    near, far = net.connect_zookeeper()
    net.fabric.double("*", "*", "*")
    near.send(wire.frame(b"a packet"), wire.frame(b"another"))
    far.expect(wire.frame(b"a packet"), wire.frame(b"another"))
    assert far.silent()


def test_doubling_is_recorded_with_every_frame_that_it_doubled(net: World) -> None:
    near, far = net.known("1")
    double = net.fabric.double("command", "A", "B")
    near.send(COMMAND)
    far.expect(COMMAND, COMMAND)
    net.fabric.heal(double)
    about = {"link": ["A", "B"], "api": "command", "direction": "request"}
    assert [
        ("double", {**about, "from_offset": None}),
        ("doubled", {**about, "offset": None}),
        ("heal", {**about, "from_offset": None}),
    ] == [(f, value) for f, value in net.record if f in ("double", "doubled", "heal")]


def test_heal_all_ends_a_doubling(net: World) -> None:
    near, far = net.known("1")
    net.fabric.double("command", "A", "B")
    net.fabric.heal_all()
    near.send(COMMAND, OTHER)
    far.expect(COMMAND, OTHER)
    assert far.silent()

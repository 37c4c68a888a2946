"""A cut loses bytes silently and resets the torn connections when it heals; a dead node looks as on a network."""

from __future__ import annotations

from contextlib import suppress

from tests.fabric.nodes import WAIT_S, World, until
from tests.targets.kafka_family.wire import wire


def test_cut_loses_both_directions_and_keeps_connections_open(net: World) -> None:
    near, far = net.known()
    cut = net.fabric.cut("A", "B")
    near.send(wire.fetch(1))
    far.send(wire.answer(1))
    until(lambda: cut.frames_lost == 2, "two frames are lost")
    assert (True, True) == (near.silent(), far.silent())


def test_healed_cut_resets_connections_that_lost_bytes_and_no_others(net: World) -> None:
    hurt, hurt_far = net.known()
    whole, whole_far = net.known()
    cut = net.fabric.cut("A", "B")
    hurt.send(wire.fetch(1))
    until(lambda: cut.frames_lost == 1, "a frame is lost")
    net.fabric.heal(cut)
    hurt.expect_reset()
    hurt_far.expect_reset()
    whole.send(wire.fetch(2))
    whole_far.expect(wire.fetch(2))
    assert ["cut", "lost", "heal"] == [f for f, _ in net.record if f in ("cut", "lost", "heal")]


def test_cut_takes_a_new_connection_once_its_source_is_known(net: World) -> None:
    cut = net.fabric.cut("A", "B")
    near, far = net.connect()
    near.send(wire.fetch(1))
    until(lambda: cut.frames_lost == 1, "the first request is lost")
    other, other_far = net.known("broker-2-fetcher")
    other.send(wire.request(18, 0, 1, "broker-2-fetcher"))
    other_far.expect(wire.request(18, 0, 1, "broker-2-fetcher"))
    assert (True, True) == (near.silent(), far.silent())


def test_cut_that_closes_resets_connections_now_and_later(net: World) -> None:
    near, far = net.known()
    net.fabric.cut("A", "B", close=True)
    near.expect_reset()
    far.expect_reset()
    assert [{"link": ["A", "B"]}] == net.values("lost")
    late, late_far = net.connect()
    late.send(wire.fetch(1))
    late.expect_reset()
    late_far.expect_reset()


def test_end_of_a_connection_is_not_told_across_a_cut(net: World) -> None:
    near, far = net.known()
    cut = net.fabric.cut("A", "B")
    near.close()
    other, other_far = net.known("broker-2-fetcher")
    other.send(wire.request(18, 0, 1, "broker-2-fetcher"))
    other_far.expect(wire.request(18, 0, 1, "broker-2-fetcher"))
    assert far.silent()
    net.fabric.heal(cut)
    far.expect_end()


def test_held_frame_is_lost_when_it_is_released_into_a_cut(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("fetch", "A", "B", "request")
    near.send(wire.fetch(1))
    hold.wait(WAIT_S)
    cut = net.fabric.cut("A", "B")
    net.fabric.release(hold)
    assert 1 == cut.frames_lost
    assert far.silent()
    assert ["its link is cut"] == [value["reason"] for value in net.values("dropped")]


def test_cut_to_any_node_takes_the_way_to_zookeeper_and_no_link_of_others(net: World) -> None:
    from_a, _ = net.known("broker-1-fetcher")
    from_b, far_of_b = net.known("broker-2-fetcher")
    keeper, _ = net.connect_zookeeper()
    cut = net.fabric.cut("A", "*")
    from_a.send(wire.fetch(1))
    keeper.send(wire.frame(b"ping"))
    until(lambda: cut.frames_lost == 2, "frames to B and to ZooKeeper are lost")
    from_b.send(wire.fetch(1, client_id="broker-2-fetcher", replica_id=2))
    far_of_b.expect(wire.fetch(1, client_id="broker-2-fetcher", replica_id=2))


def test_cut_both_ways_is_recorded_for_each_link(net: World) -> None:
    net.fabric.cut("A", "B", both_ways=True)
    net.fabric.heal_all()
    assert [["A", "B"], ["B", "A"]] == [value["link"] for value in net.values("cut")]
    assert [["A", "B"], ["B", "A"]] == [value["link"] for value in net.values("heal")]


def test_heal_all_undoes_cuts_delays_and_holds(net: World) -> None:
    near, far = net.known()
    net.fabric.hold("*", "*", "*", "request")
    net.fabric.delay("*", "*", "*", "request", 3600.0)
    net.fabric.cut("*", "*")
    net.fabric.heal_all()
    near.send(wire.fetch(1))
    far.expect(wire.fetch(1))


def test_close_links_resets_the_links_connections_once(net: World) -> None:
    near, far = net.known()
    other, other_far = net.known("broker-2-fetcher")
    assert 1 == net.fabric.close_links("A", "B")
    near.expect_reset()
    far.expect_reset()
    until(lambda: net.fabric.connections("A", "B") == 0, "the connection is gone")
    assert 1 == net.fabric.connections("B", "B")
    other.send(wire.request(18, 0, 1, "broker-2-fetcher"))
    other_far.expect(wire.request(18, 0, 1, "broker-2-fetcher"))
    net.known()
    assert [{"link": ["A", "B"], "connections": 1}] == net.values("close")


def test_dead_node_refuses_through_the_fabric(net: World) -> None:
    net.node.close()
    net.expect_refusal()


def test_dead_node_is_silent_when_it_is_cut_off(net: World) -> None:
    net.node.close()
    cut = net.fabric.cut("*", "B")
    near = net.dial()
    near.send(wire.fetch(1))
    until(lambda: net.fabric.connections("?", "B") == 1, "the connection is taken")
    assert near.silent()
    net.fabric.heal(cut)
    near.expect_reset()


def test_end_of_a_node_follows_what_it_sent(net: World) -> None:
    near, far = net.known()
    near.send(wire.fetch(1), wire.fetch(2)[:9])
    near.close()
    far.expect(wire.fetch(1), wire.fetch(2)[:9])
    far.expect_end()


def test_what_a_killed_node_sent_arrives_when_its_end_is_a_reset(net: World) -> None:
    near, far = net.known()
    frames = [wire.request(0, 3, number, "1", b"x" * 1000) for number in range(50)]
    with net.stopped():
        # The fabric writes this answer to a socket that is already dead, before it reads the requests from it.
        far.send(wire.answer(8, b"never read"))
        near.send(*frames)
        near.kill()
    far.expect(*frames)
    far.expect_end()


def test_connection_is_forgotten_when_its_receiver_dies_while_it_takes_no_more(net: World) -> None:
    near, far = net.known()
    near.sock.setblocking(False)
    near.send(wire.request(0, 3, 1, "1", b"x" * 100_000_000)[:1_000_000])
    for _ in range(500):
        with suppress(BlockingIOError):
            while True:
                near.sock.send(b"x" * 100_000)
        net.fabric.connections("A", "B")
    far.kill()
    near.close()
    until(lambda: net.fabric.connections("A", "B") == 0, "the connection is forgotten")


def test_held_request_arrives_on_release_after_its_sender_died(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("fetch", "A", "B", "request")
    near.send(wire.fetch(1))
    hold.wait(WAIT_S)
    near.kill()
    assert far.silent()
    net.fabric.release(hold)
    far.expect(wire.fetch(1))
    far.expect_end()


def test_held_request_is_dropped_when_its_receiver_died(net: World) -> None:
    near, far = net.known()
    hold = net.fabric.hold("fetch", "A", "B", "request")
    near.send(wire.fetch(1))
    hold.wait(WAIT_S)
    far.kill()
    near.expect_end()
    net.fabric.release(hold)
    assert ["its destination's connection is closed"] == [v["reason"] for v in net.values("dropped")]
    assert [] == net.values("fetch")


def test_held_answer_arrives_on_release_after_its_sender_died(net: World) -> None:
    near, far = net.known()
    near.send(wire.fetch(1, correlation=5))
    far.expect(wire.fetch(1, correlation=5))
    hold = net.fabric.hold("fetch", "A", "B", "answer")
    far.send(wire.answer(5, b"records"))
    hold.wait(WAIT_S)
    far.close()
    assert near.silent()
    net.fabric.release(hold)
    near.expect(wire.answer(5, b"records"))
    near.expect_end()


def test_zookeeper_link_holds_by_direction(net: World) -> None:
    near, far = net.connect_zookeeper()
    hold = net.fabric.hold("metadata-request", "A", "metadata", "answer")
    near.send(wire.frame(b"get"))
    far.expect(wire.frame(b"get"))
    far.send(wire.frame(b"reply"), wire.frame(b"watch"))
    assert (("A", "metadata"), "metadata-request") == ((frame := hold.wait(WAIT_S)).link, frame.api)
    assert near.silent()
    net.fabric.release(hold)
    near.expect(wire.frame(b"reply"), wire.frame(b"watch"))


def test_zookeeper_link_passes_a_four_letter_word_and_its_half_closed_answer(net: World) -> None:
    near, far = net.connect_zookeeper()
    near.send(b"ruok")
    near.sock.shutdown(1)
    far.expect(b"ruok")
    far.expect_end()
    far.send(b"imok")
    far.close()
    near.expect(b"imok")
    near.expect_end()
    assert ["?"] == [value["api"] for value in net.values("unreadable")]

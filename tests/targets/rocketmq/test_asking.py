"""What brokers and controllers say of themselves is read, and nonsense is as no answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from harness.launch import Address
from targets.rocketmq.asking import Epochs, Replica, Replicas, epochs_at, leads, replicas_at
from tests.targets.rocketmq.server import (
    Serve,
    answers,
    by_code,
    controller,
    epoch_cache,
    frame,
    hangs_up,
    is_silent,
    nobody,
    says,
    server,
)

PATIENCE_S = 20.0
LITTLE_S = 0.05
BROKERS = {"a": 1, "b": 2, "c": 3}
# What no process of RocketMQ says.
NO_OBJECTS = (b"no JSON", b"[]", b"7", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000)


def told(serve: Serve, within_s: float = PATIENCE_S) -> Epochs | None:
    with server(serve) as served:
        return epochs_at(str(served.address), within_s=within_s)


def replicas(*serves: Serve) -> Replicas | None:
    """Return what is found at controllers that do this, asked in this order."""
    if not serves:
        return replicas_at([], within_s=PATIENCE_S)
    first, *others = serves
    return _replicas(first, others, [])


def _replicas(serve: Serve, others: Sequence[Serve], before: Sequence[Address]) -> Replicas | None:
    with server(serve) as served:
        addresses = [*before, served.address]
        if others:
            return _replicas(others[0], others[1:], addresses)
        return replicas_at(addresses, within_s=PATIENCE_S)


# --- brokers ---------------------------------------------------------------------------------------------------
def test_broker_says_whether_it_leads_where_its_log_ends_and_where_epochs_begin() -> None:
    expected = Epochs(leads=False, end=900, starts={1: 0, 2: 627})
    assert expected == told(answers(body=epoch_cache(2, 900, (1, 0), (2, 627))))
    assert Epochs(leads=True, end=0, starts={}) == told(answers(body=epoch_cache(0, 0)))


@pytest.mark.parametrize("entries", [None, []])
def test_broker_without_epochs_has_none(entries: object) -> None:
    body = json.dumps({"brokerId": 0, "maxOffset": 5, "epochList": entries}).encode()
    assert Epochs(leads=True, end=5, starts={}) == told(answers(body=body))
    assert Epochs(leads=True, end=5, starts={}) == told(answers(body=b'{"brokerId": 0, "maxOffset": 5}'))


@pytest.mark.parametrize(
    "body",
    [
        *NO_OBJECTS,
        b"",
        b"{}",
        b'{"brokerId": 0}',
        b'{"maxOffset": 0}',
        b'{"brokerId": "x", "maxOffset": 0}',
        b'{"brokerId": null, "maxOffset": 0}',
        b'{"brokerId": 0, "maxOffset": []}',
        b'{"brokerId": 0, "maxOffset": NaN}',
        b'{"brokerId": 0, "maxOffset": 0, "epochList": 7}',
        b'{"brokerId": 0, "maxOffset": 0, "epochList": [7]}',
        b'{"brokerId": 0, "maxOffset": 0, "epochList": [{}]}',
        b'{"brokerId": 0, "maxOffset": 0, "epochList": {"a": 1}}',
        b'{"brokerId": 0, "maxOffset": 0, "epochList": [{"epoch": 1, "startOffset": "x"}]}',
    ],
)
def test_nonsense_of_a_broker_is_as_no_answer(body: bytes) -> None:
    assert told(answers(body=body)) is None


@pytest.mark.parametrize(
    "serve",
    [
        answers(body=b'{"brokerId": 0, "maxOffset": Infinity}'),
        answers(body=b'{"brokerId": 1e999, "maxOffset": 0}'),
        answers(body=b'{"brokerId": 0, "maxOffset": 0, "epochList": [{"epoch": 1e999, "startOffset": 0}]}'),
        says(frame(b'{"code": 1e999, "opaque": 1, "flag": 1}')),
    ],
)
def test_number_without_an_end_is_as_no_answer(serve: Serve) -> None:
    assert told(serve) is None


@pytest.mark.parametrize("serve", [hangs_up, answers(1), answers(3, body=epoch_cache(0, 0)), says(b"\xff" * 99)])
def test_broker_that_gives_no_success_says_nothing(serve: Serve) -> None:
    assert told(serve) is None


def test_broker_that_is_silent_or_not_there_says_nothing() -> None:
    assert told(is_silent, LITTLE_S) is None
    with nobody() as address:
        assert epochs_at(str(address)) is None
        assert leads(str(address)) is None
        assert replicas_at([address]) is None


# --- controllers -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"isLeader": "true", "controllerLeaderAddress": "a:1"}, True),
        ({"isLeader": "True", "controllerLeaderAddress": "a:1"}, True),
        ({"isLeader": "false", "controllerLeaderAddress": "a:1"}, False),
        ({"controllerLeaderAddress": "a:1"}, False),
        ({"isLeader": [], "controllerLeaderAddress": "a:1"}, False),
        # It knows of no leader.
        ({"isLeader": "true"}, None),
        ({"isLeader": "true", "controllerLeaderAddress": ""}, None),
        ({}, None),
        (None, None),
    ],
)
def test_controller_leads_its_peers_as_it_says_itself(
    fields: dict[str, object] | None, expected: bool | None
) -> None:
    with server(answers(fields=fields)) as served:
        assert expected is leads(str(served.address), within_s=PATIENCE_S)
    assert ["GetControllerMetadata"] == [each.what for each in served.asked]


@pytest.mark.parametrize("serve", [hangs_up, answers(2007), says(b"\xff" * 99)])
def test_controller_that_gives_no_success_does_not_say_whether_it_leads(serve: Serve) -> None:
    with server(serve) as served:
        assert leads(str(served.address), within_s=PATIENCE_S) is None


def test_controller_says_who_leads_in_which_epoch_and_who_is_in_the_set() -> None:
    assert Replicas(
        master=2,
        epoch=5,
        set_epoch=7,
        replicas=[
            Replica(number=2, host="b", alive=True, in_sync=True),
            Replica(number=3, host="c", alive=False, in_sync=True),
            Replica(number=1, host="a", alive=True, in_sync=False),
        ],
    ) == replicas(controller(BROKERS, master=2, epoch=5, in_sync={2: 0, 3: 0}, dead=(3,)))


def test_group_is_asked_for_by_its_name() -> None:
    with server(controller(BROKERS)) as served:
        replicas_at([served.address], within_s=PATIENCE_S)
    info, data = served.asked
    assert ("GetReplicaInfo", {"brokerName": "brokers"}) == (info.what, info.fields)
    assert ("GetSyncStateData", ["brokers"]) == (data.what, json.loads(data.body))


def test_group_without_a_master_has_none_and_its_last_epoch() -> None:
    found = replicas(controller(BROKERS, master=None, epoch=4))
    assert found is not None
    assert (None, 4, 3) == (found.master, found.epoch, len(found.replicas))


@pytest.mark.parametrize(
    ("fields", "master"),
    [
        ({"masterBrokerId": "1", "masterAddress": "a:10911"}, 1),
        ({"masterBrokerId": "-1", "masterAddress": "a:10911"}, None),
        ({"masterBrokerId": "", "masterAddress": "a:10911"}, None),
        ({"masterBrokerId": None, "masterAddress": "a:10911"}, None),
        ({"masterAddress": "a:10911"}, None),
        ({"masterBrokerId": "1", "masterAddress": ""}, None),
        ({"masterBrokerId": "1", "masterAddress": None}, None),
        ({"masterBrokerId": "1"}, None),
    ],
)
def test_master_is_one_with_a_number_and_an_address(fields: dict[str, object], master: int | None) -> None:
    assert master == _of(fields={"masterEpoch": "3", **fields})


def _of(
    *, fields: dict[str, object] | None = None, of_set: object = None, table: object = None
) -> int | str | None:
    """Return the master by an answer that has these parts, "nothing" if it is as no answer."""
    found = replicas(_saying(fields, of_set, table))
    return "nothing" if found is None else found.master


def _saying(fields: dict[str, object] | None, of_set: object, table: object) -> Serve:
    good = {"masterEpoch": "3", "masterBrokerId": "1", "masterAddress": "a:10911"}
    whole = {"inSyncReplicas": [{"brokerId": 1, "brokerAddress": "a:10911", "alive": True}]}
    info = json.dumps({"syncStateSet": [1], "syncStateSetEpoch": 2} if of_set is None else of_set)
    data = json.dumps({"replicasInfoTable": {"brokers": whole}} if table is None else table)
    return by_code(
        {
            "GetReplicaInfo": answers(fields=good if fields is None else fields, body=info.encode()),
            "GetSyncStateData": answers(body=data.encode()),
        }
    )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"masterBrokerId": "1", "masterAddress": "a:1"},
        {"masterEpoch": "x", "masterBrokerId": "1", "masterAddress": "a:1"},
        {"masterEpoch": None, "masterBrokerId": "1", "masterAddress": "a:1"},
        {"masterEpoch": [], "masterBrokerId": "1", "masterAddress": "a:1"},
        {"masterEpoch": "3", "masterBrokerId": "x", "masterAddress": "a:1"},
        {"masterEpoch": "3", "masterBrokerId": [], "masterAddress": "a:1"},
    ],
)
def test_nonsense_about_the_master_is_as_no_answer(fields: dict[str, object]) -> None:
    assert "nothing" == _of(fields=fields)


@pytest.mark.parametrize(
    "of_set",
    [
        [],
        7,
        "x",
        {"syncStateSet": 7},
        {"syncStateSet": ["x"]},
        {"syncStateSet": [None]},
        {"syncStateSetEpoch": "x"},
    ],
)
def test_nonsense_about_the_set_is_as_no_answer(of_set: object) -> None:
    assert "nothing" == _of(of_set=of_set)


def of_group(group: object) -> object:
    """Return what a controller says of the brokers' group."""
    return {"replicasInfoTable": {"brokers": group}}


@pytest.mark.parametrize(
    "table",
    [
        *([], 7, {}, {"replicasInfoTable": None}, {"replicasInfoTable": {}}, {"replicasInfoTable": {"other": {}}}),
        *(of_group(None), of_group(7), of_group([]), of_group("x"), of_group({"inSyncReplicas": 7})),
        *(
            of_group({"inSyncReplicas": [None]}),
            of_group({"inSyncReplicas": [7]}),
            of_group({"inSyncReplicas": [{}]}),
        ),
        of_group({"inSyncReplicas": [{"brokerId": 1}]}),
        of_group({"notInSyncReplicas": [{"brokerId": "x", "brokerAddress": "a:1"}]}),
    ],
)
def test_nonsense_about_the_brokers_is_as_no_answer(table: object) -> None:
    assert "nothing" == _of(table=table)


@pytest.mark.parametrize("body", NO_OBJECTS)
def test_body_that_is_no_object_is_as_no_answer(body: bytes) -> None:
    assert replicas(answers(fields={"masterEpoch": "3"}, body=body)) is None


def test_number_without_an_end_of_a_controller_is_as_no_answer() -> None:
    assert "nothing" == _of(of_set={"syncStateSet": [float("inf")]})


def test_set_and_brokers_that_are_not_said_are_none() -> None:
    found = replicas(_saying(None, {}, of_group({"inSyncReplicas": None})))
    assert Replicas(master=1, epoch=3, set_epoch=0, replicas=[]) == found


def test_controllers_are_asked_one_after_the_other_until_one_leads() -> None:
    """Who follows says so by code 2007."""
    found = replicas(answers(2007), hangs_up, answers(body=b"[]"), controller(BROKERS), is_silent)
    assert found is not None and found.master == 1


def test_without_a_controller_that_leads_nothing_is_known() -> None:
    assert replicas() is None
    assert replicas(answers(2007), answers(2007)) is None


def test_controller_that_knows_no_broker_says_nothing() -> None:
    assert replicas(by_code({"GetReplicaInfo": answers(2008)})) is None

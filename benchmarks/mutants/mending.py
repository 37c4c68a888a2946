"""Mutants of how a broker takes what others write into ZooKeeper, or delete there."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

# Where it is done, which a schedule does not.
BY_HAND: Final = "tests/simulator/broker/test_foreign_writes.py does"

MUTANTS: Final = (
    # --- office ----------------------------------------------------------------------------------------------
    Mutant(
        name="failed-check-is-no-news",
        module="office",
        category=Category.COMMAND,
        sentence="A controller whose check fails does not look who is in office, and is refused for ever.",
        breaks="Kafka's ControllerMovedException, after which KafkaController.maybeResign reads /controller",
        edits=(
            (
                "frozenset({ZkError.BAD_VERSION, ZkError.NO_NODE})",
                "frozenset({ZkError.NO_NODE})",
            ),
        ),
        unreachable=f"no schedule writes into /controller_epoch: {BY_HAND}",
    ),
    Mutant(
        name="goes-on-under-the-old-version",
        module="office",
        category=Category.COMMAND,
        sentence="A controller whose epoch others wrote again goes on, and still checks the version of before.",
        breaks="KAFKA-6082: every write checks the version that /controller_epoch has",
        edits=(("        known.epoch_version = epoch.version\n", ""),),
        unreachable=f"no schedule writes into /controller_epoch: {BY_HAND}",
    ),
    # --- membership ------------------------------------------------------------------------------------------
    Mutant(
        name="own-registration-unwatched",
        module="membership",
        category=Category.COMMAND,
        sentence="A broker does not watch its registration: one that an operator deletes stays gone.",
        breaks="V3 E: who runs is registered, and what is not registered is dead to the controller",
        edits=(
            ("        ZkExists(path=path, watch=True),\n", "        ZkExists(path=path),\n"),
            (
                "AwaitRegistrationWatched(), ZkExists(path=path, watch=True)",
                "AwaitRegistrationWatched(), ZkExists(path=path)",
            ),
        ),
        unreachable=f"no schedule deletes a registration of who runs: {BY_HAND}",
    ),
    # --- permanent paths -------------------------------------------------------------------------------------
    Mutant(
        name="deleted-path-stays-gone",
        module="permanent_paths",
        category=Category.COMMAND,
        sentence="Only a broker that starts makes the paths; one that is deleted later is not made again.",
        breaks="Kafka's KafkaZkClient.createRecursive makes a path's parents with whatever is written below it",
        edits=(("in PERMANENT.items())", "in PERMANENT.items() if not core.state.started)"),),
        unreachable=f"no schedule deletes one of these paths: {BY_HAND}",
    ),
    Mutant(
        name="admin-unwatched",
        module="controller",
        category=Category.COMMAND,
        sentence="The controller does not watch /admin: deleted, it is made again with its next reading alone.",
        breaks="Kafka's KafkaZkClient.createRecursive makes a path's parents with whatever is written below it",
        edits=(("ZkExists(path=ADMIN, watch=True)", "ZkExists(path=ADMIN)"),),
        unreachable=f"no schedule deletes /admin: {BY_HAND}",
    ),
    Mutant(
        name="admin-never-missed",
        module="controller",
        category=Category.COMMAND,
        sentence="The controller sees that /admin is gone, and does not make it again.",
        breaks="Kafka's KafkaZkClient.createRecursive makes a path's parents with whatever is written below it",
        edits=(("in (brokers, topics, admin)", "in (brokers, topics)"),),
        unreachable=f"no schedule deletes /admin: {BY_HAND}",
    ),
    Mutant(
        name="settings-unwatched",
        module="permanent_paths",
        category=Category.MANY,
        sentence="A broker reads topics' settings when it starts, and no change of them.",
        breaks="Kafka's ZkConfigManager: every broker watches the changes",
        edits=(("ZkExists(path=CONFIG_TOPICS, watch=True)", "ZkExists(path=CONFIG_TOPICS)"),),
    ),
    Mutant(
        name="epoch-made-empty",
        module="permanent_paths",
        category=Category.COMMAND,
        sentence="Who makes /controller_epoch writes no number: all brokers name it as what cannot be read.",
        breaks="Kafka's KafkaZkClient.createControllerEpochRaw: the node begins with a number",
        edits=(('CONTROLLER_EPOCH: b"0"', 'CONTROLLER_EPOCH: b""'),),
        unreachable=(
            "the first election writes a number over it, and of what brokers name no oracle hears: "
            "tests/broker/core/test_numbers_read.py"
        ),
    ),
)

"""The limits of queues, retries and waits of the harness, with the unit in the name."""

from __future__ import annotations

from typing import Final

# How long the runner waits for a condition of a scenario before the run is unknown. A condition normally holds
# within milliseconds; the limit is generous so that a busy machine does not fail a run.
CONDITION_WAIT_S_MAX: Final = 40.0
# How long a step waits for partitions to be removed: no controller may be there to do it.
REMOVED_S_MAX: Final = 10.0
CONDITION_POLL_S: Final = 0.005
# How long a broker at work may take to meet an error of its disk: many times its longest rest between two writes.
DISK_ERROR_S_MAX: Final = 5.0

PROCESS_START_S_MAX: Final = 30.0
# How long a process may take to print its clocks; one whose clocks run slowly takes longer than others.
CLOCKS_ANSWER_S_MAX: Final = 10.0
PROCESS_END_S_MAX: Final = 10.0
# How long a report of what a disk or the metadata have already may be on its way, before a run is read without it.
TOLD_S_MAX: Final = 5.0
# How long a process of a service may take until it serves, and to answer a question.
SERVICE_START_S_MAX: Final = 30.0
SERVICE_ANSWER_S_MAX: Final = 10.0
# How long the harness's own connection to the metadata may be lost before the run fails.
METADATA_LOST_S_MAX: Final = 15.0
# A target's own metadata: how often they are looked at, how long one look may take, and how long the end of what
# follows them; how many looks may come within a second.
METADATA_POLL_S: Final = 0.05
METADATA_LOOK_S_MAX: Final = 10.0
METADATA_END_S_MAX: Final = 5.0
METADATA_LOOKS_PER_S_MAX: Final = 5_000
# How long one call of a target's own code may last that has no limit of its own, such as to launch a node, or to
# ask its operator for the end of a membership. What it waits for itself takes less.
TARGET_CALL_S_MAX: Final = 30.0
# How long it may take to say what one printed line means.
PRINTED_LINE_S_MAX: Final = 5.0
CLIENT_OPERATION_S_MAX: Final = 20.0
# How long a run waits at its end for its tables: 100 M ops take a quarter of an hour if nothing was followed.
TABLES_END_S_MAX: Final = 1_800.0
# How long a run leaves alone what another run of this process could not clean up.
REAP_AGAIN_S_MIN: Final = 60.0
# So many runs in a row that could not be played end a search: each of the next would fail for the same reason.
FAILED_RUNS_IN_A_ROW_MAX: Final = 10

# A machine of the host `ssh`. Its agent is told every second that the harness lives, and answers; after so long a
# silence each takes the other for gone: the agent's guard heals the machine, and the harness's run is unknown.
SSH_BEAT_S: Final = 1.0
SSH_SILENCE_S: Final = 15.0
SSH_SILENCE_S_MIN: Final = 2.0
SSH_SILENCE_S_MAX: Final = 3_600.0
SSH_CONNECT_S_MAX: Final = 20.0
# One call to an agent, which may wait itself for the events of a dead node.
SSH_CALL_S_MAX: Final = 150.0
# What a node may have on its disk for a copy of it to be held here.
MIRROR_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024
MACHINES_BYTES_MAX: Final = 256 * 1024
MACHINES_MAX: Final = 100

# The size of one broker's loop filesystem. The file is sparse, so that only written data uses space.
DISK_BYTES: Final = 48 * 1024 * 1024
# The free space that a suite needs to start.
FREE_BYTES_MIN: Final = 1024 * 1024 * 1024

# What options accept. More processes than any machine has cores for, and more seeds than can be played.
OPTION_JOBS_MAX: Final = 512
OPTION_SEED_MAX: Final = 2**53
OPTION_SEEDS_MAX: Final = 10**9
OPTION_S_MAX: Final = 31 * 86_400
# An error's one line.
ERROR_CHARACTERS_MAX: Final = 4_000
# A suite's table, suite.json.
SUITE_BYTES_MAX: Final = 256 * 1024 * 1024

# A scenario's file; docs/scenarios.md prints them. They are far above what a scenario needs, which shows a bug
# with a few records: a number above is a slip, which would use all memory, or wait for days.
SCENARIO_BYTES_MAX: Final = 1024 * 1024
SCENARIO_LINES_MAX: Final = 10_000
SCENARIO_LINE_CHARACTERS_MAX: Final = 4_000
SCENARIO_NODES_MAX: Final = 26
# Processes of one service.
SCENARIO_SERVICES_MAX: Final = 9
SCENARIO_GROUPS_MAX: Final = 1_000
# Of all groups together, at their largest.
SCENARIO_RECORDS_MAX: Final = 100_000
SCENARIO_OFFSET_MAX: Final = 1_000_000
SCENARIO_EPOCH_MAX: Final = 2**31 - 1
# Of a time in a step or a setting.
SCENARIO_TIME_S_MAX: Final = 86_400

# A workload's clients.
WORKLOAD_BATCH_MAX: Final = 10_000
WORKLOAD_VALUE_BYTES_MAX: Final = 100_000
WORKLOAD_PARTITIONS_MAX: Final = 100
# The most acknowledged records, or polls with records, after which a client is killed that is to be killed.
WORKLOAD_KILL_AFTER_MAX: Final = 10_000
# How often it is looked whether a client in a process of its own is to end.
CLIENT_LOOK_S: Final = 0.05

# A history of Jepsen's, `check --jepsen`. It is held in memory, at some 13 bytes for each of its own.
JEPSEN_BYTES_MAX: Final = 512 * 1024 * 1024
JEPSEN_LINES_MAX: Final = 3_000_000
JEPSEN_LINE_BYTES_MAX: Final = 16 * 1024 * 1024

# Ports for local nodes, below the kernel's ephemeral range, so that no outgoing connection uses them.
PORT_FIRST: Final = 18000
PORT_LAST: Final = 31999

# What the reader of logs takes from a disk, whose files may hold anything. Each limit is far above what a sound
# log has, and together they keep the comparison of three replicas below 1 GB. What is beyond is unreadable.
# One batch: a broker takes 1 MB by default (message.max.bytes), and operators raise it to some tens of MB.
LOG_BATCH_BYTES_MAX: Final = 64 * 1024 * 1024
# One batch's records when decompressed: 1 MB that opens to more is no message but a bomb.
LOG_BATCH_OPENED_BYTES_MAX: Final = 128 * 1024 * 1024
# A batch of 1 MB has at most 150,000 records, of 7 bytes each.
LOG_BATCH_RECORDS_MAX: Final = 200_000
LOG_RECORD_HEADERS_MAX: Final = 100_000
LOG_READ_BYTES: Final = 1024 * 1024
# Kafka's largest segment (log.segment.bytes is an int): zeros are followed no further.
LOG_ZEROS_BYTES_MAX: Final = 2 * 1024 * 1024 * 1024
# What is taken from any reader of logs, a target's own too: the batches of a log that is not in the node's files
# (else it has one for each of their bytes), and the text of the values that are held at a time.
LOG_BATCHES_MIN: Final = 200_000
# How long one call of a reader may last: to bring the next batch, or to list a folder. Ours take milliseconds.
LOG_CALL_S_MAX: Final = 10.0
LOG_TEXT_CHARACTERS_MAX: Final = 1024 * 1024 * 1024
# A checkpoint of a data directory has a line for each partition, one of epochs a line for each.
CHECKPOINT_BYTES_MAX: Final = 32 * 1024 * 1024
CHECKPOINT_ENTRIES_MAX: Final = 250_000
EPOCHS_MAX: Final = 100_000
# The names of a folder: partitions of a data directory, files of a partition.
FOLDER_NAMES_MAX: Final = 250_000
# The findings about a replica (changes of epoch, holes, unreadable ranges) or about a partition (differences).
LOG_FINDINGS_MAX: Final = 10_000
# The records of one replica that are compared at a time.
LOG_WINDOW_RECORDS: Final = 100_000

"""
DescribeLogDirs: how many bytes the logs of this broker have, all in one directory.

Source:  KIP-113; Kafka, ReplicaManager.describeLogDirs.
"""

from __future__ import annotations

from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import DescribeLogDirsRequest, DescribeLogDirsResponse, LogSize
from targets.broker.core.state import Core, Replica


def on_describe_log_dirs(core: Core, caller: Caller, request: DescribeLogDirsRequest) -> None:
    """Answer with the logs that are here, whatever their role; what is not here is left out, as in Kafka."""
    replicas = core.state.replicas
    asked = replicas if request.partitions is None else dict.fromkeys(request.partitions)
    sizes = tuple(_size_of(replicas[tp]) for tp in sorted(asked) if tp in replicas)
    core.effects.append(
        Answer(to=caller, response=DescribeLogDirsResponse(path=core.disk.log_dir.path, logs=sizes))
    )


def _size_of(replica: Replica) -> LogSize:
    return LogSize(tp=replica.tp, size=sum(file.size for file in replica.log.files()))

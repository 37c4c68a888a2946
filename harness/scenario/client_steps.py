"""The steps of a scenario that a client does at once, other than to produce."""

from __future__ import annotations

from harness.cluster.client import Client
from harness.cluster.cluster import Cluster
from harness.cluster.settings import FORMAT_SETTING, FORMAT_VERSIONS
from harness.scenario.offsets import RecordOffsets
from harness.scenario.steps import ChangeFormat, Delete, Read


def act(
    step: Read | Delete | ChangeFormat, client: Client, cluster: Cluster, record_offsets: RecordOffsets
) -> None:
    """
    Do what the step says to the cluster's main partition, or to its topic.

    Raises:
        PreconditionError: it was refused, or not answered in time.
    """
    match step:
        case Read(None):
            client.read_all(cluster.topic, cluster.partition)
        case Read(node):
            client.read_all(cluster.topic, cluster.partition, via=cluster.address_of(str(node)))
        case Delete(before):
            client.delete_records(cluster.topic, cluster.partition, record_offsets.number(before))
        case ChangeFormat(number):
            client.alter_topic(cluster.topic, FORMAT_SETTING, FORMAT_VERSIONS[number])

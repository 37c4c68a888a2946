"""
Messages that kio lacks, or without our fields, in kio's own dataclass style, by (api key, version).

kio reads a field's type from its annotation, so these modules cannot use `from __future__ import annotations`.
"""

from __future__ import annotations

from typing import Any, Final

from targets.broker.wire.schema import control, epochs, identity

OWN_REQUESTS: Final[dict[tuple[int, int], type[Any]]] = {
    (1, 12): identity.FetchRequest,
    (2, 6): identity.ListOffsetsRequest,
    (4, 0): control.LeaderAndIsrRequest,
    (4, 1): control.LeaderAndIsrRequestV1,
    (4, 2): control.LeaderAndIsrRequestV2,
    (5, 0): control.StopReplicaRequest,
    (5, 1): control.StopReplicaRequestV1,
    (5, 2): control.StopReplicaRequestV2,
    (23, 0): epochs.OffsetForLeaderEpochRequest,
    (23, 1): epochs.OffsetForLeaderEpochRequest,
    (23, 4): identity.OffsetForLeaderEpochRequest,
}
OWN_RESPONSES: Final[dict[tuple[int, int], type[Any]]] = {
    (4, 0): control.LeaderAndIsrResponse,
    (4, 1): control.LeaderAndIsrResponse,
    (4, 2): control.LeaderAndIsrResponse,
    (5, 0): control.StopReplicaResponse,
    (5, 1): control.StopReplicaResponse,
    (5, 2): control.StopReplicaResponse,
    (23, 0): epochs.OffsetForLeaderEpochResponseV0,
    (23, 1): epochs.OffsetForLeaderEpochResponseV1,
}

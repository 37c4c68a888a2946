"""
Replicas' logs, whichever system wrote them: what a log is as data, and where replicas of one partition disagree.

    record      a record's content, and its digest
    replica     one replica's log as data -> the history's `snapshot` and `batch` ops
    stream      a log while it is read, and the whole of it
    lineage     several ReplicaLogs -> where they disagree          graph   how their histories fork
    soundness   one ReplicaLog -> disorder, holes, epochs beside the log that contradict it
    compare     several logs while they are read -> all of these findings          lawful  whether they are allowed
"""

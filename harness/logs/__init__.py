"""
Replicas' logs, whichever system wrote them: what a log is as data, and where replicas of one partition disagree.

    record      a record's content, and its digest
    replica     one replica's log as data -> the history's `snapshot` and `batch` ops
    stream      a log while it is read, and the whole of it
    lineage     several ReplicaLogs -> where they disagree          graph   how their histories fork
    soundness   one ReplicaLog -> disorder, holes, epochs beside the log that contradict it
    compare     several logs while they are read -> all of these findings          lawful  whether they are allowed

For readers of logs that are kept in segments:

    source      the bytes of a file, piece by piece         files       which there are, and whether they change
    walking     the sound batches of a segment              segments    the segments of a log, in order -> findings
    checkpoint  a text file with a version and entries      flips       which byte of these files rots
"""

"""
The log scanner and the lineage reader: read Kafka's log directories, of any broker, without writing to them.

    replica     one replica's log as data              record      a record's content, and its digest
    stream      a log while it is read, and the whole of it
    files       which of a partition's files are its log, and whether a broker uses them
    reading     the segments of one log, batch by batch
    scan        a partition's directory -> a reading of its log
    lineage     several ReplicaLogs -> where they disagree          graph   how their histories fork
    soundness   one ReplicaLog -> disorder, holes, a checkpoint that contradicts the log
"""

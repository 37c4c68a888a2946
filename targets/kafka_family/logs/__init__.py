"""
The log reader of Kafka's family: reads the log directories of any of its brokers, without writing to them.

    files       which of a partition's files are its log, and whether a broker uses them
    batch       the batches of a segment, format v2          message_set   those of formats v0 and v1
    records     the records of a batch                       codec         how they are compressed
    reading     the segments of one log, batch by batch
    scan        a partition's directory -> a reading of its log
    flipping    which byte of a partition's files rots
"""

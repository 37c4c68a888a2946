"""
The log reader of NATS JetStream: reads the store directories of its servers, without writing to them.

    data        which streams a store directory holds, and the Raft group of each
    store       the message blocks of a store, encrypted and compressed ones too
    blocks      the records of a message block
    highway     their checksum, of many at once
    s2          how blocks and large entries are compressed
    entries     a Raft group's append entries, and the stream's records in them; for the wire too
    raft_log    the records in a Raft log, and the terms of a stream's records
    survey      what a store says of itself before its records are read
    scan        a stream's store -> a reading of its log
    rot         which byte may be flipped
    reader      all of it as a part of the target
"""

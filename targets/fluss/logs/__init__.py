"""
The log reader of Apache Fluss: reads the data directories of its tablet servers, without writing to them.

    data        which replicas a data directory holds, and their high watermarks
    batch       the batches of a segment
    arrow       what an Arrow message claims, before it is opened
    records     the records of a batch
    scan        a bucket's folder -> a reading of its log
    reader      all of it as a part of the target
"""

"""A broker's logs on files, in Kafka's layout: the file implementation of the core's LogPort."""

from __future__ import annotations

from targets.broker.log.data_dir import DataDir, OpenedData, open_data_dir
from targets.broker.log.doubt import LogInDoubtError
from targets.broker.log.file_log import FileLog
from targets.broker.log.options import LogOptions
from targets.broker.log.produced import split_produced
from targets.broker.log.records import HeavyError
from targets.broker.log.stored import split_stored

__all__ = [
    "DataDir",
    "FileLog",
    "HeavyError",
    "LogInDoubtError",
    "LogOptions",
    "OpenedData",
    "open_data_dir",
    "split_produced",
    "split_stored",
]

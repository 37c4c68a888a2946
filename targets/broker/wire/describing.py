"""DescribeConfigs (api 32), AlterConfigs (33), DescribeLogDirs (35), IncrementalAlterConfigs (44) of clients."""

from __future__ import annotations

from typing import Any, Final

from targets.broker.core.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlteredSetting,
    AlterOperation,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    ErrorCode,
    TopicPartition,
)
from targets.broker.wire.entities import NO_TIME, Schema, fill, item_type, kio_error, listed, topics_of
from targets.broker.wire.produce import SplitBatches

# Kafka's numbers of where a value comes from (KIP-226).
_OF_TOPIC: Final = 1
_FROM_FILE: Final = 4
_DEFAULT: Final = 5
# Kafka's value for a volume's bytes that were not counted.
_NOT_COUNTED: Final = -1
_ERROR_TEXT_MAX: Final = 1000


def read_configs_request(entity: Any, _split: SplitBatches) -> DescribeConfigsRequest:
    """Convert kio's entity to the core's request."""
    return DescribeConfigsRequest(
        resources=tuple(
            ConfigResource(
                kind=resource.resource_type,
                name=resource.resource_name,
                keys=None if resource.configuration_keys is None else tuple(resource.configuration_keys),
            )
            for resource in listed(entity.resources, "resources")
        ),
        synonyms=entity.include_synonyms,
    )


def write_configs_response(entity: Schema, response: DescribeConfigsResponse) -> Any:
    """Convert the core's response to kio's entity of that version."""
    result_type = item_type(entity, "results")
    entry_type = item_type(result_type, "configs")
    return fill(
        entity,
        throttle_time=NO_TIME,
        results=tuple(
            fill(
                result_type,
                error_code=kio_error(result.error),
                error_message=result.error_text or None,
                resource_type=result.kind,
                resource_name=result.name,
                configs=tuple(_write_entry(entry_type, entry) for entry in result.entries),
            )
            for result in response.results
        ),
    )


def _write_entry(entity: Schema, entry: ConfigEntry) -> Any:
    """Convert one setting; behind a topic's own stands the broker's, of which a client learns no more."""
    behind = _DEFAULT if entry.is_default else _FROM_FILE
    source = _OF_TOPIC if entry.of_broker else behind
    synonym_type = item_type(entity, "synonyms")
    synonyms = [fill(synonym_type, name=entry.synonym, value=entry.of_broker or entry.value, source=behind)]
    if entry.of_broker:
        synonyms.insert(0, fill(synonym_type, name=entry.name, value=entry.value, source=_OF_TOPIC))
    return fill(
        entity,
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=source,
        is_sensitive=False,
        synonyms=tuple(synonyms) if entry.synonym else (),
        config_type=int(entry.kind),
        documentation=None,
    )


def read_alter_request(entity: Any, _split: SplitBatches) -> AlterConfigsRequest:
    """Convert kio's entity of AlterConfigs to the core's request."""
    return _alter_request(entity, incremental=False)


def read_incremental_request(entity: Any, _split: SplitBatches) -> AlterConfigsRequest:
    """Convert kio's entity of IncrementalAlterConfigs to the core's request."""
    return _alter_request(entity, incremental=True)


def _alter_request(entity: Any, *, incremental: bool) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        resources=tuple(
            AlteredResource(
                kind=resource.resource_type,
                name=resource.resource_name,
                settings=tuple(
                    AlteredSetting(
                        each.name, each.value, each.config_operation if incremental else AlterOperation.SET
                    )
                    for each in listed(resource.configs, "configs")
                ),
            )
            for resource in listed(entity.resources, "resources")
        ),
        incremental=incremental,
        validate_only=entity.validate_only,
    )


def _read_setting(each: Any, incremental: bool) -> AlteredSetting:
    return AlteredSetting(each.name, each.value, each.config_operation if incremental else AlterOperation.SET)


def write_alter_response(entity: Schema, response: AlterConfigsResponse) -> Any:
    """Convert the core's response to kio's entity of either API."""
    result_type = item_type(entity, "responses")
    results = tuple(
        fill(
            result_type,
            error_code=kio_error(result.error),
            error_message=result.error_text[:_ERROR_TEXT_MAX] or None,
            resource_type=result.kind,
            resource_name=result.name,
        )
        for result in response.results
    )
    return fill(entity, throttle_time=NO_TIME, responses=results)


def read_log_dirs_request(entity: Any, _split: SplitBatches) -> DescribeLogDirsRequest:
    """Convert kio's entity to the core's request; null requests all."""
    if entity.topics is None:
        return DescribeLogDirsRequest(partitions=None)
    return DescribeLogDirsRequest(
        partitions=tuple(
            TopicPartition(topic.topic, partition)
            for topic in entity.topics
            for partition in listed(topic.partitions, "partitions")
        )
    )


def write_log_dirs_response(entity: Schema, response: DescribeLogDirsResponse) -> Any:
    """Convert the core's response to kio's entity of that version; no log ends before its high watermark."""
    result_type = item_type(entity, "results")
    result = fill(
        result_type,
        error_code=kio_error(ErrorCode.NONE),
        log_dir=response.path,
        topics=topics_of(
            result_type,
            "topics",
            response.logs,
            lambda log: {
                "partition_index": log.tp.partition,
                "partition_size": log.size,
                "offset_lag": 0,
                "is_future_key": False,
            },
            name="name",
        ),
        total_bytes=_NOT_COUNTED,
        usable_bytes=_NOT_COUNTED,
    )
    return fill(entity, throttle_time=NO_TIME, error_code=kio_error(ErrorCode.NONE), results=(result,))

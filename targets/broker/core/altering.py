"""
AlterConfigs and IncrementalAlterConfigs: what topics have of their own, written under the version that was read.

Any broker does it, as in Kafka with ZooKeeper; all take it up by their watches (`topic_configs`). A broker's own
settings cannot be changed while it runs. Errors are Kafka's: a name that no topic has is INVALID_CONFIG, a value
that it cannot have INVALID_REQUEST. None says that another change came before: settings that were written between
a request's reading and its write are read once more, and what is there by then is altered.
Source:  KIP-133, KIP-339; Kafka, ZkAdminManager.alterConfigs, incrementalAlterConfigs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from targets.broker.core import made, readable, settings, topic_configs
from targets.broker.core.configs import ResourceKind, is_topic, refusal
from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlteredSetting,
    AlterOperation,
    ConfigKind,
    ConfigResult,
    ErrorCode,
)
from targets.broker.core.state import Core
from targets.broker.core.topics import LOST, MEANWHILE
from targets.broker.core.zookeeper import (
    ZkCheck,
    ZkDone,
    ZkError,
    ZkGet,
    ZkMulti,
    ZkNode,
    ZkResult,
    config_path,
    topic_path,
)

_ANY: Final = -1


class _RefusedError(Exception):
    """A change that cannot be made: its error, and a text that says why."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsToAlter:
    """
    Settings are to be altered; the topics and what they have are being read.

    Attributes:
        ids: the places in the request of what is read; once more, each with its topic's czxid.
        results: of what is read once more, what the first reading said of all, by place.
    """

    caller: Caller
    request: AlterConfigsRequest
    ids: Mapping[int, int | None]
    results: Mapping[int, ConfigResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitConfigsWritten:
    """
    Settings are being written: the results so far, by their places in the request.

    Attributes:
        ids: which of them each write is about, with the czxid of its topic.
        again: whether they were read once more.
    """

    caller: Caller
    request: AlterConfigsRequest
    results: Mapping[int, ConfigResult]
    ids: Mapping[int, int]
    again: bool


def on_alter_configs(core: Core, caller: Caller, request: AlterConfigsRequest) -> None:
    """Read the topics and their settings; answer."""
    places = dict.fromkeys(range(len(request.resources)))
    _read(core, AwaitTopicsToAlter(caller=caller, request=request, ids=places))


def _read(core: Core, continuation: AwaitTopicsToAlter) -> None:
    resources = (continuation.request.resources[place] for place in continuation.ids)
    names = [resource.name for resource in resources if is_topic(resource)]
    pairs = ((ZkGet(path=topic_path(name)), ZkGet(path=config_path(name))) for name in names)
    core.ask(continuation, *(op for pair in pairs for op in pair))


def on_read(core: Core, continuation: AwaitTopicsToAlter, results: tuple[ZkResult, ...]) -> None:
    """Check each resource, in the order in which they were named, and write those that may be altered."""
    request, nodes = continuation.request, iter(results)
    named = Counter((resource.kind, resource.name) for resource in request.resources)
    checked = {**continuation.results}
    writes: list[ZkMulti] = []
    ids: dict[int, int] = {}
    for place, czxid in continuation.ids.items():
        resource = request.resources[place]
        topic, node = (
            (made.if_same(next(nodes), czxid), next(nodes)) if is_topic(resource) else (None, ZkError.NO_NODE)
        )
        error, text = refusal(core, resource, topic)
        if named[resource.kind, resource.name] > 1:
            error, text = ErrorCode.INVALID_REQUEST, f"{resource.name[:80]!r} was named twice; expected once"
        if error is ErrorCode.NONE:
            try:
                write = _write(core, resource, topic, node, incremental=request.incremental)
            except _RefusedError as refused:
                error, text = refused.error, str(refused)
            else:
                if write is not None and not request.validate_only:
                    assert isinstance(topic, ZkNode), "only a topic that is there has settings that are written"
                    writes.append(write)
                    ids[place] = topic.czxid
        checked[place] = ConfigResult(kind=resource.kind, name=resource.name, error=error, error_text=text)
    after = AwaitConfigsWritten(
        caller=continuation.caller, request=request, results=checked, ids=ids, again=bool(continuation.results)
    )
    if writes:
        core.ask(after, *writes)
    else:
        on_written(core, after, ())


def on_written(core: Core, continuation: AwaitConfigsWritten, results: tuple[ZkResult, ...]) -> None:
    """Answer; what was written meanwhile is read once more, and then left as it is."""
    answered = {**continuation.results}
    refused: dict[int, int | None] = {}
    for (place, czxid), result in zip(continuation.ids.items(), results, strict=True):
        if result in MEANWHILE and not continuation.again:
            refused[place] = czxid
        else:
            error, text = _written(answered[place].name, result)
            answered[place] = replace(answered[place], error=error, error_text=text)
    if refused:
        caller, request = continuation.caller, continuation.request
        _read(core, AwaitTopicsToAlter(caller=caller, request=request, ids=refused, results=answered))
        return
    response = AlterConfigsResponse(results=tuple(answered.values()))
    core.effects.append(Answer(to=continuation.caller, response=response))


def _written(name: str, result: ZkResult) -> tuple[ErrorCode, str]:
    if isinstance(result, ZkDone):
        return ErrorCode.NONE, ""
    changed = f"topic {name!r} or its settings were changed meanwhile, twice ({result}); nothing is altered"
    return ErrorCode.REQUEST_TIMED_OUT, LOST if result is ZkError.LOST else changed


# --- one resource --------------------------------------------------------------------------------------------
def _write(
    core: Core, resource: AlteredResource, topic: ZkResult | None, node: ZkResult, *, incremental: bool
) -> ZkMulti | None:
    """
    Return what writes a resource's settings, None if they are as wanted.

    Raises:
        _RefusedError: the resource cannot have them.
    """
    if resource.kind == ResourceKind.BROKER:
        # None is its own that could be deleted (the tool that moves partitions deletes throttles, set or not).
        given = [each.name[:80] for each in resource.settings if each.operation != AlterOperation.DELETE]
        if given:
            text = f"settings {given}: expected none of a broker, which"
            raise _RefusedError(ErrorCode.INVALID_REQUEST, f"{text} has those that it was started with")
        return None
    if node is ZkError.LOST:
        raise _RefusedError(ErrorCode.REQUEST_TIMED_OUT, LOST)
    own = topic_configs.read_own(core, resource.name, node, topic or ZkError.NO_NODE)
    before = {} if own is None else own.given
    if incremental and isinstance(node, ZkNode) and own is None and topic_configs.is_of(node, topic or node):
        text = "what stands in ZooKeeper cannot be read; expected JSON, or AlterConfigs, which replaces it"
        raise _RefusedError(ErrorCode.INVALID_CONFIG, f"the settings of topic {resource.name!r}: {text}")
    after = _altered(core, resource, before, incremental=incremental)
    try:
        settings.topic_config(after, core.config, core.disk.log_dir)
    except settings.UnknownSettingError as error:
        raise _RefusedError(ErrorCode.INVALID_CONFIG, str(error)) from error
    except settings.SettingError as error:
        raise _RefusedError(ErrorCode.INVALID_REQUEST, str(error)) from error
    ops = topic_configs.changes(resource.name, node, after)
    # The topic is still there, whatever has become of its partitions: that one, if it has a mark.
    there = ZkCheck(path=topic_path(resource.name), version=_ANY)
    has = readable.read_assignment(core, resource.name, topic) if isinstance(topic, ZkNode) else None
    same = () if has is None else made.checks(core, resource.name, has.made)
    return ZkMulti(ops=(there, *same, *ops)) if ops else None


def _altered(
    core: Core, resource: AlteredResource, before: Mapping[str, str], *, incremental: bool
) -> dict[str, str]:
    """Return a topic's settings after the changes, as text that is not checked yet."""
    names = Counter(each.name for each in resource.settings)
    after = dict(before) if incremental else {}
    for each in resource.settings:
        if names[each.name] > 1:
            raise _wrong(each, "was named twice; expected once")
        if each.operation == AlterOperation.DELETE and incremental:
            after.pop(each.name, None)
        elif each.value is None:
            raise _wrong(each, "has no value; expected one")
        elif each.operation == AlterOperation.SET:
            after[each.name] = each.value
        else:
            after[each.name] = _joined(core, each, each.value, before)
    return after


def _joined(core: Core, each: AlteredSetting, value: str, before: Mapping[str, str]) -> str:
    """Return a list with more or fewer members: of the topic's own, or of the broker's while it has none."""
    setting = settings.OF_TOPICS.get(each.name)
    if each.operation not in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        raise _wrong(each, f"is to be altered by operation {each.operation}; expected 0 to 3")
    if setting is None or setting.kind is not ConfigKind.LIST:
        raise _wrong(each, "is no list, to which or from which something can be added or taken")
    there = settings.listed(
        before[each.name] if each.name in before else settings.text_of(setting, core.config, core.disk.log_dir)
    )
    members = settings.listed(value)
    if each.operation == AlterOperation.APPEND:
        return ",".join(dict.fromkeys((*there, *members)))
    return ",".join(member for member in there if member not in members)


def _wrong(each: AlteredSetting, what: str) -> _RefusedError:
    return _RefusedError(ErrorCode.INVALID_REQUEST, f"setting {each.name[:80]!r} {what}")

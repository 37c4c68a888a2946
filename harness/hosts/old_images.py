"""
Images of other builds: those of Fencepost's that today's sources do not give; found, and removed by their tag.

Such an image is of an older build, or of another checkout, which builds it again when it needs it. An image that a
container uses is kept, and so is one that another user or another state folder has built. Nothing else on the
engine is looked at: an image counts only if its repository and its labels are ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.cleanup import engine
from harness.hosts import image_build

_TAG: Final = re.compile(r"fencepost-([a-z]+):[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OldImage:
    """
    One tag that is not today's.

    Attributes:
        size: in bytes, as the engine says; images share parts.
        created_s: in seconds since 1970.
        kept: why it is kept, "" if it may be removed.
    """

    tag: str
    size: int
    created_s: int
    kept: str


def find(client: Any) -> list[OldImage]:
    """
    Return the images of other builds, the oldest first.

    Raises:
        UsageError: The engine does not answer, or has no base image, on which today's tags depend.
    """
    with engine.answering("look for images of other builds"):
        today = image_build.today(client)
        users = _users(client)
        found = [
            OldImage(tag=tag, size=each["Size"], created_s=each["Created"], kept=_why_kept(each, users))
            for each in client.api.images(filters={"label": image_build.STAGE_LABEL})
            for tag in each["RepoTags"] or ()
            if tag not in (today.broker, today.java) and _is_ours(tag, each["Labels"] or {})
        ]
    return sorted(found, key=lambda each: (each.created_s, each.tag))


def remove(client: Any, old: OldImage) -> str:
    """Remove the tag, and the image with it unless it has another one; return why it could not be, or ""."""
    try:
        # Without force: the engine refuses if a container has been made of it meanwhile.
        client.images.remove(old.tag)
    except engine.ENGINE_ERRORS as error:
        return f"image {old.tag}: {engine.said_by(error)}; expected to be able to remove it"
    return ""


def _is_ours(tag: str, labels: dict[str, str]) -> bool:
    match = _TAG.fullmatch(tag)
    return match is not None and labels.get(image_build.STAGE_LABEL) == match[1]


def _why_kept(image: dict[str, Any], users: dict[str, list[str]]) -> str:
    if names := users.get(image["Id"]):
        return f"used by {', '.join(sorted(names))}"
    if image["Labels"].get(image_build.OWNER_LABEL) != image_build.owner():
        return "built by another user, or under another state folder"
    return ""


def _users(client: Any) -> dict[str, list[str]]:
    """Return the names of the containers of each image, running or not."""
    found: dict[str, list[str]] = {}
    for each in client.api.containers(all=True):
        names: Sequence[str] = each["Names"] or [each["Id"][:12]]
        found.setdefault(each["ImageID"], []).append(names[0].removeprefix("/"))
    return found

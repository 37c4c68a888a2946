"""
The images of a broker node and of nodes that run on Java, built when their inputs have changed.

An image's tag is a hash over its inputs: the Dockerfile, the base image, the project's files and the pinned
wheels. `python -m harness.hosts.images` builds both images and prints their tags. The base image is pulled
if it is missing; if the default base cannot be pulled, a Debian bookworm made with mmdebstrap replaces it.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docker.errors import APIError, BuildError, DockerException, ImageNotFound

from harness.cleanup.state import state_dir
from harness.hosts import contents
from harness.hosts.images import DEFAULT_BASE
from harness.model import UsageError

OWN_BASE: Final = "fencepost-base:bookworm"
# In a checkout a link to the file at its top, so that an installed package has it too.
DOCKERFILE: Final = "harness/hosts/Dockerfile"
# In every stage of the Dockerfile.
OWNER_LABEL: Final = "fencepost.built-by"
# Of a finished image: which stage it is.
STAGE_LABEL: Final = "fencepost.image"

# In the Dockerfile's order: the classic builder also builds every stage before the requested one.
STAGES: Final = ("broker", "java")


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The tags of both images."""

    broker: str
    java: str


def ensure(client: Any, base: str = "") -> Images:
    """
    Return the tags of both images; build those that are missing.

    Args:
        base: Name of the base image; "": $FENCEPOST_BASE or DEFAULT_BASE.

    Raises:
        UsageError: There is no base image, a wheel cannot be downloaded, or a build fails; the text says what is
            needed.
    """
    with _one_at_a_time():
        found = _base(client, base or _base_name())
        tags = {target: _tag(target, found.id) for target in STAGES}
        missing: dict[str, str] = {}
        for target in STAGES:
            try:
                client.images.get(tags[target])
            except ImageNotFound:
                missing[target] = tags[target]
        if missing:
            _build_all(client, missing, found.id)
    return Images(broker=tags["broker"], java=tags["java"])


def today(client: Any) -> Images:
    """Return the tags of both images as today's sources give them; raise UsageError if their base is not here."""
    base = _known_base(client, _base_name())
    if base is None:
        raise UsageError(
            f"base image {_base_name()!r}: not here, and today's tags depend on it; expected it; "
            "`python -m harness.hosts.images` brings it"
        )
    return Images(broker=_tag("broker", base.id), java=_tag("java", base.id))


def _base_name() -> str:
    return os.environ.get("FENCEPOST_BASE", DEFAULT_BASE)


def _known_base(client: Any, name: str) -> Any:
    """Return the base image if the engine has it, else None."""
    for known in (name, OWN_BASE) if name == DEFAULT_BASE else (name,):
        try:
            return client.images.get(known)
        except ImageNotFound:
            continue
    return None


def _base(client: Any, name: str) -> Any:
    """Return the base image: an existing one, or pulled, or made."""
    if (known := _known_base(client, name)) is not None:
        return known
    try:
        return client.images.pull(name)
    except DockerException as error:
        if name != DEFAULT_BASE:
            raise UsageError(f"base image {name!r}: {error}; expected one that can be pulled") from error
        why = str(error)
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        raise UsageError(
            f"base image {name!r}: {why[:200]}; expected to pull it, or to make one as root with mmdebstrap; "
            "`apt-get install mmdebstrap`, or name a base that is here with FENCEPOST_BASE"
        )
    return _make_base(client)


def _make_base(client: Any) -> Any:
    """Make a minimal Debian bookworm, whose Python is 3.11, and import it."""
    repository, _, tag = OWN_BASE.partition(":")
    with tempfile.TemporaryDirectory(prefix="fencepost-base-") as folder:
        archive = Path(folder) / "base.tar"
        unwanted = ("doc", "man", "locale", "info")
        done = subprocess.run(
            [
                "mmdebstrap",
                "--quiet",
                "--variant=minbase",
                "--include=python3",
                *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in unwanted),
                "bookworm",
                str(archive),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise UsageError(
                f"base image: mmdebstrap: {done.stderr.strip()[-400:]}; expected a Debian mirror in "
                "/etc/apt/sources.list"
            )
        client.api.import_image(src=str(archive), repository=repository, tag=tag)
    return client.images.get(OWN_BASE)


def _tag(target: str, base_id: str) -> str:
    """Return an image's tag: a hash over all its inputs."""
    digest = hashlib.sha256(f"{target} {base_id} {platform.machine()}\n".encode())
    for pin in contents.pins(target):
        digest.update(pin.encode() + b"\n")
    for path in (contents.ROOT / DOCKERFILE, *contents.sources(target)):
        digest.update(str(path.relative_to(contents.ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return f"fencepost-{target}:{digest.hexdigest()[:16]}"


def _build_all(client: Any, tags: Mapping[str, str], base_id: str) -> None:
    """Build these targets, then remove the images of their stages that have no name."""
    try:
        for target, tag in tags.items():
            _build(client, target, tag, base_id)
    finally:
        # Not earlier: a target builds the stages before its own again, and finds them in the engine's cache.
        _remove_unnamed(client)


def _remove_unnamed(client: Any) -> None:
    """
    Remove the images without a name that builds of this user left, also those of builds that were killed.

    The label names the user and the state folder, whose lock the caller holds: no build in progress has it.
    """
    unnamed = {"dangling": True, "label": f"{OWNER_LABEL}={owner()}"}
    for found in client.api.images(filters=unnamed):
        # One that a container uses stays until the next build.
        with suppress(APIError):
            client.api.remove_image(found["Id"])


def owner() -> str:
    """Return the value of OWNER_LABEL in all images that this user builds under this state folder's lock."""
    return hashlib.sha256(f"{os.geteuid()} {state_dir('images')}".encode()).hexdigest()[:16]


def _build(client: Any, target: str, tag: str, base_id: str) -> None:
    """Build one target from a context with the files that its stages copy."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        archive.add((contents.ROOT / DOCKERFILE).resolve(), "Dockerfile")
        for stage in STAGES[: STAGES.index(target) + 1]:
            for wheel in contents.download(stage):
                archive.add(wheel, f"build/wheels/{stage}/{wheel.name}")
            for path in contents.sources(stage):
                archive.add(path, str(path.relative_to(contents.ROOT)))
    context.seek(0)
    try:
        client.images.build(
            fileobj=context,
            custom_context=True,
            target=target,
            tag=tag,
            buildargs={"BASE": base_id, "OWNER": owner()},
            labels={STAGE_LABEL: target},
            rm=True,
            forcerm=True,
        )
    except BuildError as error:
        said = "".join(str(line.get("stream", "")) for line in error.build_log)[-800:]
        raise UsageError(f"image {tag}: {error}; expected it to build; it said:\n{said}") from error
    except APIError as error:
        raise UsageError(f"image {tag}: {error}; expected it to build") from error


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold this user's lock for building images, so that other processes and threads wait and find the images."""
    with (state_dir("images") / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield

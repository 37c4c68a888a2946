"""
How each kind of thing in the ledger is undone: one function a kind, and the table of all of them.

Each takes the entry's fields and gives "" when the thing is gone, or else what is left and why. Undoing
twice is undoing once. An entry may tell of a thing that never came to be: it was written before.

    process    token, since; pid, start, boot once it runs
    mount      mount_point, backing
    directory  path: a file or a whole tree, in the run's folder or in the state folder
    container  name, label
    network    name, label
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from harness.cleanup import mounts
from harness.cleanup.process import Identity, boot_id, end, tokens_alive
from harness.model import UsageError

Fields = Mapping[str, Any]


def _process(fields: Fields) -> str:
    """End the process and whatever it forked; a boot that is over took its processes along."""
    if fields["boot"] != boot_id():
        return ""
    targets = list(tokens_alive(fields["token"], fields["since"]))
    if "pid" in fields:
        targets.append(Identity(pid=fields["pid"], start=fields["start"], boot=fields["boot"]))
    left = [str(target.pid) for target in targets if not end(target)]
    return f"process {', '.join(left)}: alive after SIGKILL" if left else ""


def _mount(fields: Fields) -> str:
    """Unmount the place, if that file is what is mounted there, and free its loop device."""
    return mounts.unmount(Path(fields["mount_point"]), Path(fields["backing"]))


def _directory(fields: Fields) -> str:
    """Remove the tree; never through a mount that is still there."""
    path = Path(fields["path"])
    below = mounts.mounts_below(path)
    if below:
        return f"{path}: {below[0]} is still mounted; expected no mount below"
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror}; expected to be able to remove it"
    return ""


def _container(fields: Fields) -> str:
    """Remove the container of that name, if it bears our label."""
    return _docker_remove("containers", fields)


def _network(fields: Fields) -> str:
    """Remove the network of that name, if it bears our label."""
    return _docker_remove("networks", fields)


def _docker_remove(collection: str, fields: Fields) -> str:
    """Remove what bears both that exact name and our label from one of the engine's collections."""
    from docker.errors import DockerException, NotFound

    from harness.cleanup.engine import connect

    label, _, value = fields["label"].partition("=")
    try:
        client = connect()
        try:
            every = {"all": True} if collection == "containers" else {}
            for found in getattr(client, collection).list(filters={"label": fields["label"]}, **every):
                if found.name != fields["name"]:
                    continue
                if collection == "containers":
                    found.remove(force=True, v=True)
                elif (found.attrs.get("Labels") or {}).get(label) == value:
                    found.remove()
        except NotFound:
            return ""
        finally:
            client.close()
    except (UsageError, DockerException, OSError) as error:
        return f"{collection} {fields['name']}: {error}; expected an engine that removes it"
    return ""


UNDO: Final[dict[str, Callable[[Fields], str]]] = {
    "process": _process,
    "mount": _mount,
    "directory": _directory,
    "container": _container,
    "network": _network,
}

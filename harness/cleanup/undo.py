"""
Undo the entries of the ledger: one function for each kind of resource, and the table of them.

Each function receives the entry's fields. It returns "" if the resource is gone, or else what is left and why. All
are idempotent. The resource of an entry may never have existed, because the entry is written before.

    process    token, mark, since, boot; pid and start once it runs
    mount      mount_point, backing
    fuse       mount_point, source; its process has an entry of its own
    directory  path: a file or a whole tree, in the run's folder or in the state folder
    container  name, label
    network    name, label
    chain      name: one of iptables, of our own
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from harness import extras
from harness.cleanup import chains, mounts
from harness.cleanup.process import Identity, bearers, boot_id, end, remove_shared
from harness.model import UsageError

Fields = Mapping[str, Any]


def _process(fields: Fields) -> str:
    """Kill the process and all that it forked; processes of an earlier boot are gone."""
    if fields["boot"] != boot_id():
        return ""
    mark = Path(fields["mark"]) if "mark" in fields else None  # None: a ledger of an earlier version
    targets = list(bearers(fields["token"], fields["since"], mark))
    if "pid" in fields:
        targets.append(Identity(pid=fields["pid"], start=fields["start"], boot=fields["boot"]))
    left = [str(target.pid) for target in targets if not end(target)]
    for target in targets:
        remove_shared(target.pid)
    return f"process {', '.join(left)}: alive after SIGKILL" if left else ""


def _mount(fields: Fields) -> str:
    """Unmount the path, if the backing file is mounted there, and free its loop device."""
    return mounts.unmount(Path(fields["mount_point"]), Path(fields["backing"]))


def _fuse(fields: Fields) -> str:
    """Take the FUSE mount away, if it is the one with our source; its process ends with it, or is gone before."""
    return mounts.detach(Path(fields["mount_point"]), fields["source"])


def _directory(fields: Fields) -> str:
    """Remove the tree, unless a filesystem is still mounted below it, or from it if it is a file."""
    path = Path(fields["path"])
    below = mounts.mounts_below(path)
    if below:
        return f"{path}: {below[0]} is still mounted; expected no mount below"
    if path.is_file() and (problem := mounts.still_backs(path)):
        return problem
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror}; expected to be able to remove it"
    return ""


def _container(fields: Fields) -> str:
    """Remove the container of this name, if it has our label."""
    return _docker_remove("containers", fields)


def _network(fields: Fields) -> str:
    """Remove the networks of this name that have our label; the engine allows several of one name."""
    return _docker_remove("networks", fields)


def _docker_remove(collection: str, fields: Fields) -> str:
    """Remove the containers or networks that have both this exact name and our label."""
    if why := extras.lacks("docker"):  # a dead run of another installation left it
        return f"{collection} {fields['name']}: {why}"
    from docker.errors import DockerException

    from harness.cleanup import engine

    try:
        client = engine.connect()
        try:
            list_of = engine.containers if collection == "containers" else engine.networks
            for found in list_of(client, fields["label"]):
                if found.name == fields["name"]:
                    engine.remove(found)
        finally:
            client.close()
    except (UsageError, DockerException, OSError) as error:
        # How to start an engine is what the next command says; here it would be said for each container.
        why = str(error).partition("; expected")[0]
        return f"{collection} {fields['name']}: {why}; expected an engine that removes it"
    return ""


def _chain(fields: Fields) -> str:
    """Remove the chain, and every jump to it."""
    return chains.remove(fields["name"])


UNDO: Final[dict[str, Callable[[Fields], str]]] = {
    "process": _process,
    "mount": _mount,
    "fuse": _fuse,
    "directory": _directory,
    "container": _container,
    "network": _network,
    "chain": _chain,
}

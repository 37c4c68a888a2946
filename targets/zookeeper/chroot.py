"""The path in ZooKeeper below which a run has its cluster: runs share a server, and see nothing of each other."""

from __future__ import annotations

from pathlib import Path

from harness.target.target import NodeSpec


def chroot_of(folder: Path) -> str:
    """Return the path in ZooKeeper below which a run with this folder has its cluster."""
    return f"/{folder.parent.name}-{folder.name}"


def connection_of(spec: NodeSpec) -> str:
    """Return what a node connects to: its links to all servers, and the path of its run."""
    return f"{','.join(map(str, spec.services))}{chroot_of(spec.folder)}"

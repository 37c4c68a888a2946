"""How a server of Fluss is started on a host: its file, and Java on the jars of its release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.java import find_java
from harness.launch import Address, Launch, Place, Runtime
from harness.target.settings import Settings
from targets.fluss.config import FILE, LOG4J, LOG4J_TEXT, command_line, server_yaml
from targets.fluss.versions import class_path, library
from targets.zookeeper.chroot import chroot_of


def launched(
    main: str,
    name: str,
    place: Place,
    *,
    release: str,
    reached: Mapping[str, Address],
    zookeeper: Sequence[Address],
    folder: Path,
    settings: Settings,
    rules: Mapping[str, str],
    further: Mapping[str, str] | None = None,
) -> Launch:
    """
    Return how to start a server.

    Args:
        main: the class of a tablet server, or of a coordinator.
        reached: other server -> where that one reaches this one.
        folder: the run's.
        further: settings of this server alone.

    Raises:
        UsageError: a jar is missing, there is no Java, or Fluss lacks a setting.
    """
    text = server_yaml(
        name,
        listens=place.internal,
        clients=place.client,
        clients_outside=place.client_outside,
        reached=reached,
        zookeeper=zookeeper,
        root=chroot_of(folder),
        data_dir=place.data_dir,
        settings=settings,
        rules=rules,
        further=further,
    )
    return Launch(
        argv=command_line(
            place.java or str(find_java().executable),
            _inside(class_path(release, library()), place.library),
            main,
            place.conf_dir,
        ),
        files={FILE: text, LOG4J: LOG4J_TEXT},
        runtime=Runtime.JAVA,
        library=library(),
    )


def _inside(jars: Sequence[Path], there: str) -> list[Path]:
    """Return where a server finds these jars: in its host's copy of the library, if it has one."""
    return [Path(there) / jar.relative_to(library()) if there else jar for jar in jars]

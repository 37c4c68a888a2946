"""
Run one broker:  python -m targets.broker --config FILE [--check]

Exit codes: 0 stopped by SIGTERM or SIGINT, after a clean shutdown; 1 could not go on; 2 wrong configuration.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path
from typing import NoReturn

# With hypothesis installed kio offers it strategies, which doubles the start-up time and serves tests alone.
sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]

from targets.broker.config import ConfigError, load  # noqa: E402
from targets.broker.driver import Driver  # noqa: E402
from targets.broker.log.beneath import RefusedError  # noqa: E402
from targets.broker.log.lock import DataDirTakenError, held  # noqa: E402
from targets.broker.serving import serve  # noqa: E402

log = logging.getLogger("fencepost.broker")


class _Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _log_to_stderr() -> None:
    """Log without looking up what no line shows: a failover logs some lines for each partition."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )


def main() -> int:
    """Read the configuration, serve, and shut down cleanly on a signal."""
    parser = _Parser(prog="python -m targets.broker", description="Run one Fencepost broker.", allow_abbrev=False)
    parser.add_argument("--config", type=Path, required=True, help="JSON; targets/broker/config.py lists its keys")
    parser.add_argument("--check", action="store_true", help="read the configuration and end")
    arguments = parser.parse_args()
    _log_to_stderr()
    try:
        config, settings = load(arguments.config)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.check:
        return 0
    try:
        with held(settings.data_dir):
            return asyncio.run(serve(Driver(config, settings)))
    except (DataDirTakenError, RefusedError) as error:
        log.error("ended: %s", error)
        return 1
    except OSError as error:
        # With the file, which its repr lacks.
        log.error("ended: %s: %s", type(error).__name__, error)
        return 1


if __name__ == "__main__":
    sys.exit(main())

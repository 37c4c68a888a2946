"""
Spark's Java process: started here and not by Spark's own shell scripts, so that it is ours alone to end.

The scripts start one Java only to ask it how to start the other, load a module of which Java then warns on stderr,
and let executors import PySpark from an archive without byte code, which costs each of them a second and more.
The process ends by itself when the pipe to its standard input closes: also when we are killed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from harness import limits
from harness.model import FencepostError, UsageError
from harness.process import identity_of, until

# Spark is up in two seconds; a machine with ten other things to do takes many times as long.
START_S_MAX: Final = 120.0

_JARS: Final = Path(pyspark.__file__).parent / "jars"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_OPENED: Final = (
    *("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.io"),
    *("java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent"),
    *("java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref", "java.base/sun.nio.ch"),
    *("java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar"),
    "java.security.jgss/sun.security.krb5",
)
# What Spark's launcher would say, but for the module jdk.incubator.vector, which only linear algebra would use.
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "-Dderby.connection.requireAuthentication=false",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
# A check is seconds long, and most of it Java warming up: one collector thread, and one compiler that leaves alone
# what is seldom called, halve the processor time that Java's own choices take.
_TUNING: Final = (
    "-Xmx1g",
    "-XX:TieredStopAtLevel=1",
    "-XX:CompileThresholdScaling=4",
    "-XX:+UseSerialGC",
    # No file of figures in a folder of its own.
    "-XX:-UsePerfData",
    # Java's own remarks, such as that a class archive is another Java's and is left alone.
    "-Xlog:disable",
)
_FOLDER: Final = "fencepost-spark"
_ADDRESS: Final = "address"
# Lists of processes show how a command line begins, and this one's own name stands at its end.
_NAME: Final = "-Dfencepost.program=org.apache.spark.deploy.SparkSubmit"
_PROGRAM: Final = (
    *("-cp", f"{_JARS}/*", f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"),
    *("org.apache.spark.deploy.SparkSubmit", "pyspark-shell"),
)
# What would make this Spark another one, or a client of a remote one.
_FOREIGN: Final = frozenset({"SPARK_HOME", "SPARK_REMOTE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Jvm:
    """A Java process with Spark in it: where PySpark reaches it, with what secret, and all that it writes."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    secret: str

    def end(self, seconds: float = limits.PROCESS_END_S_MAX) -> None:
        """Let it stop Spark, or kill it when that takes longer; nothing that it wrote for itself stays."""
        assert self.process.stdin is not None, "it was started with a pipe"
        self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_jvm(java: Path, env: Mapping[str, str], options: Sequence[str] = ()) -> Jvm:
    """
    Start Java with Spark in it and wait until it serves.

    Shapes:  env is added to our own environment, and reaches executors. options are Java's.
             The process has a group of its own: Ctrl-C in a terminal is for us, and we end it.
    Raises:  UsageError when that Java does not start, or ends before it serves; FencepostError when it serves
             nobody within START_S_MAX.
    """
    folder = _new_folder()
    try:
        process = subprocess.Popen(
            [str(java), _NAME, *MODULE_OPTIONS, *_TUNING, *options, f"-Djava.io.tmpdir={folder}", *_PROGRAM],
            stdin=subprocess.PIPE,
            env={
                **{name: value for name, value in os.environ.items() if name not in _FOREIGN},
                # Spark would otherwise look up this machine's name, which need not resolve, and say so.
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_LOCAL_DIRS": str(folder),
                "SPARK_CONNECT_MODE": "0",
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / _ADDRESS),
                **env,
            },
            process_group=0,
        )
    except OSError as error:
        folder.rmdir()
        raise UsageError(f"Spark: {java}: {error.strerror}; expected a Java 17 or later that runs") from error
    try:
        return _serving(java, process, folder)
    except BaseException:
        process.kill()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _new_folder() -> Path:
    """Make a folder that says whose it is; remove those of who was killed before Java knew that it should."""
    base, uid = Path(tempfile.gettempdir()), os.geteuid()
    for old in base.glob(f"{_FOLDER}-*"):
        whose = re.fullmatch(rf"{_FOLDER}-(\d+)-(\d+)-\w+", old.name)
        owner = identity_of(int(whose[1])) if whose else None
        gone = whose is not None and (owner is None or owner.start != int(whose[2]))
        if gone and old.lstat().st_uid == uid:
            shutil.rmtree(old, ignore_errors=True)
    ourselves = identity_of(os.getpid())
    assert ourselves is not None, "we are alive, so /proc must know us"
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}-{ourselves.pid}-{ourselves.start}-"))


def _serving(java: Path, process: subprocess.Popen[bytes], folder: Path) -> Jvm:
    """Wait until the process has written where it is reached; the file appears whole."""
    address = folder / _ADDRESS
    until(lambda: address.exists() or process.poll() is not None, START_S_MAX)
    if address.exists():
        with address.open("rb") as file:
            port, secret = read_int(file), UTF8Deserializer().loads(file)
        return Jvm(process=process, folder=folder, port=port, secret=secret)
    ended = process.poll()
    if ended is None:
        raise FencepostError(f"Spark: {java}: serves nobody after {START_S_MAX:.0f} s; expected it to within that")
    raise UsageError(
        f"Spark: {java}: ended with exit code {ended} before it served; expected a Java 17 or later that runs "
        "Spark; what it said stands above"
    )


def connect(jvm: Jvm) -> Any:
    """Give PySpark's gateway to the process, as PySpark joins a Java that somebody else started."""
    told = {"PYSPARK_GATEWAY_PORT": str(jvm.port), "PYSPARK_GATEWAY_SECRET": jvm.secret}
    os.environ.update(told)
    try:
        gateway = launch_gateway()
    finally:
        for name in told:
            del os.environ[name]
    # When we are killed, nobody but the process itself is left to remove what it wrote.
    gateway.jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(
        gateway.jvm.java.io.File(str(jvm.folder))
    )
    return gateway


def forget_gateway() -> None:
    """Let PySpark forget the process that it was connected to, so that a next session starts another."""
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def archive_path(java: Path) -> Path:
    """
    Give where the class archive for this Java and this PySpark is kept, made or not: checkers/archive.py makes it.

    It lies in the Python environment whose Spark it describes, and goes with it.
    """
    real = java.resolve()
    mark = f"{real} {real.stat().st_mtime_ns}" if real.exists() else str(real)
    name = f"spark-{pyspark.__version__}-{sha256(mark.encode()).hexdigest()[:12]}.jsa"
    return Path(sys.prefix) / "share" / "fencepost" / name


def archive_options(java: Path) -> tuple[str, ...]:
    """Give the options with which Java takes classes from the archive, () when there is none."""
    path = archive_path(java)
    return (f"-XX:SharedArchiveFile={path}",) if path.exists() else ()

"""What a command line says of Spark is read, and what is malformed is named before anything starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from checkers.spark.options import Folder, SparkOptions, folder_of, name_of, reach, spark_path
from harness.model import UsageError


@pytest.mark.parametrize(
    ("master", "is_local", "hosts"),
    [
        ("local", True, []),
        ("local[4]", True, []),
        ("local[*]", True, []),
        ("local[2,3]", True, []),
        ("local-cluster[2,1,512]", False, []),
        ("spark://a:7077", False, [("a", 7077)]),
        ("spark://a:7077,[::1]:8077", False, [("a", 7077), ("::1", 8077)]),
        ("yarn", False, []),
        ("k8s://https://a:6443", False, []),
    ],
)
def test_master_is_one_that_spark_knows(master: str, is_local: bool, hosts: list[tuple[str, int]]) -> None:
    options = SparkOptions.of(master, ["spark.a=1", "spark.b=x=y", "spark.a=2"])
    assert (is_local, hosts) == (options.is_local, options.hosts)
    assert {"spark.a": "2", "spark.b": "x=y"} == options.settings
    assert options == SparkOptions.from_json(options.to_json())


@pytest.mark.parametrize(
    "master", ["", "locl", "local[]", "local[x]", "spark://a", "spark://", "sparq://a:1", "k8s://"]
)
def test_master_that_spark_does_not_know_is_named(master: str) -> None:
    with pytest.raises(UsageError, match=r"^--master '.*': expected local\[\*\], local\[N\], spark://HOST:PORT"):
        SparkOptions.of(master)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("spark.a", "--conf 'spark.a': expected spark.NAME=VALUE"),
        ("a=1", "--conf 'a=1': expected spark.NAME=VALUE"),
        ("spark.=1", "--conf 'spark.=1': expected spark.NAME=VALUE"),
        ("", "--conf '': expected spark.NAME=VALUE"),
        ("spark.master=local", "--conf 'spark.master=local': expected --master"),
        ("spark.submit.deployMode=cluster", "expected nothing: this process is the driver"),
    ],
)
def test_setting_that_is_malformed_or_ours_is_named(setting: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        SparkOptions.of("local[*]", [setting])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "folder", "name", "path"),
    [
        ("/a/b[1]", Path("/a/b[1]"), "b[1]", r"file:///a/b\[1\]/x"),
        ("file:/a/b", Path("/a/b"), "b", "file:///a/b/x"),
        ("file:///a/b", Path("/a/b"), "b", "file:///a/b/x"),
        ("hdfs://h:1/a/b*/", "hdfs://h:1/a/b*", "b*", r"hdfs://h:1/a/b\*/x"),
        ("s3a://a/b", "s3a://a/b", "b", "s3a://a/b/x"),
    ],
)
def test_folder_is_a_local_path_or_a_uri_and_has_no_pattern(
    text: str, folder: Folder, name: str, path: str
) -> None:
    assert folder == folder_of(text)
    assert name == name_of(folder_of(text))
    assert path == spark_path(folder_of(text), "x")


def test_master_that_does_not_listen_is_named_before_java_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        port, closed = server.getsockname()[1], other.getsockname()[1]
        other.close()
        reach(SparkOptions(master=f"spark://127.0.0.1:{closed},127.0.0.1:{port}"))
        reach(SparkOptions(master="local[2]"))
        with pytest.raises(
            UsageError, match=f"^Spark: spark://127.0.0.1:{closed}: .*Connection refused; expected"
        ):
            reach(SparkOptions(master=f"spark://127.0.0.1:{closed}"))

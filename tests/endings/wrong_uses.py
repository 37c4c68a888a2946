"""
The list of wrong uses: each is an exit with one line and a documented code, and starts nothing.

A word `{x}` in an argument is a file or folder of `Things`, which are not what the command needs.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DIGITS: Final = "9" * 5000
SUITE: Final = {
    "name": "x",
    "started": "",
    "commit": "",
    "host": "sim",
    "target": "broker",
    "power_tier": "",
    "seed": 1,
    "rules": {},
    "cells": [],
    "seconds": 1.0,
}


@dataclass(frozen=True, slots=True)
class Use:
    """
    One wrong use.

    Attributes:
        words: the command line after `fencepost`, or after `python -m`.
        says: a part of its line.
    """

    words: tuple[str, ...]
    says: str

    def __str__(self) -> str:
        return " ".join(word[:30] for word in self.words) or "nothing"


def use(line: str, says: str, *more: str) -> Use:
    """Return a use; `more` are words that have spaces in them, or none at all."""
    return Use((*line.split(), *more), says)


def make_things(folder: Path) -> dict[str, str]:
    """Make files and folders that are not what a command needs; return their paths by name."""
    folder.mkdir()
    right = b"title  A\nsource B\nnodes A B replicas, C controller\nrecords m1 1\n"
    files = {
        "scenario": right + b"produce m1 acks=1\n",
        "empty": b"",
        "binary": b"\xff\xfe\0\x01\n" * 9,
        "json": b'{"cells": []}',
        "typo": right + b"kil A\n",
        "hungry": right.replace(b"m1 1", b"m1 99999999999") + b"produce m1 acks=1\n",
        "large": b"x" * 2_000_000,
        "config": b'{"broker_id": "seven"}',
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    suites = {
        "s_empty": "",
        "s_list": "[1]",
        "s_keys": '{"rules": {}}',
        "s_deep": "[" * 100_000,
        "s_seed": json.dumps({**SUITE, "seed": "1"}),
        "s_more": json.dumps({**SUITE, "colour": "red"}),
        "s_cell": json.dumps({**SUITE, "cells": [{"scenario": "kip101-1"}]}),
        "s_one": json.dumps(SUITE),
        "s_two": json.dumps({**SUITE, "seed": 2}),
    }
    for name, text in suites.items():
        (folder / name).mkdir()
        (folder / name / "suite.json").write_text(text, encoding="utf-8")
    (folder / "s_binary").mkdir()
    (folder / "s_binary" / "suite.json").write_bytes(b"\x80\x04\x95")
    (folder / "s_folder" / "suite.json").mkdir(parents=True)
    (folder / "folder").mkdir()
    (folder / "zero").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    return {path.name: str(path) for path in folder.iterdir()} | {"missing": str(folder / "missing")}


FENCEPOST: Final = (
    # No command, or none that is known.
    use("", "no command; expected one of play, scenarios, "),
    use("plaay", "'plaay'; expected one of play, scenarios, targets, "),
    use("--verbose", "required: COMMAND"),
    use("", "''; expected one of", ""),
    # Options that do not exist, are cut short, lack a value, or have one too many.
    use("play --hots sim", "unrecognized arguments: --hots sim. Did you mean '--hosts'?"),
    use("play --scen kip101-1", "unrecognized arguments: --scen kip101-1. Did you mean '--scenario'?"),
    use("run --protocl=hw", "Did you mean '--protocol'?"),
    use("play --seed", "--seed: expected one argument"),
    use("play kip101-1", "unrecognized arguments: kip101-1"),
    use("scenarios --all", "unrecognized arguments: --all"),
    use("test-kafka --rule a=b", "unrecognized arguments: --rule a=b"),
    use("test-kip101 --scenarios kip101-1", "Did you mean '--scenario'?"),
    use("test-kip101 --scenario kip320-isr-join", "unknown scenario 'kip320-isr-join': expected one of"),
    # Numbers.
    use("play --seed -1", "--seed: '-1': expected a whole number from 0 to "),
    use("run --seed 1.5", "--seed: '1.5': expected a whole number from 0 to "),
    use(f"play --seed {DIGITS}", "--seed: '9999"),
    use("play --jobs 0", "--jobs: '0': expected a whole number from 1 to 512"),
    use("play --jobs 100000", "--jobs: '100000': expected a whole number from 1 to 512"),
    use("run --seeds 0", "--seeds: '0': expected a whole number from 1 to 1000000000"),
    use("run --seeds -5", "--seeds: '-5': expected a whole number from 1 to 1000000000"),
    use("run --seeds 100000000000", "--seeds: '100000000000': expected a whole number from 1 to 1000000000"),
    use("run --time 0", "--time: '0': expected a number above 0"),
    use("run --time nan", "--time: 'nan': expected a number above 0"),
    use("run --time inf", "--time: 'inf': expected a number above 0"),
    use("run --time 1e9", "--time: '1e9': expected a number above 0, up to 2678400"),
    use("play --ports 9-5", "--ports: '9-5': expected FIRST-LAST"),
    use(f"play --ports 1-{DIGITS}", "expected FIRST-LAST, from 1 to 65535"),
    # Names.
    use(
        "play --host dokcer",
        "unknown host 'dokcer': expected one of docker, local, sim, ssh. Did you mean 'docker'?",
    ),
    use("test-kafka --host sim", "unknown host 'sim': expected one of docker, local, ssh."),
    use(
        "play --host ssh", "host ssh: no list of machines; expected --hosts FILE, or FENCEPOST_HOSTS, a TOML file"
    ),
    use("run --host ssh --hosts none.toml", "none.toml: No such file or directory; expected a list of machines"),
    use("play --hosts x.toml", "--hosts x.toml: host local lists no machines; expected it with host ssh"),
    use("play --host ssh --hosts", "--hosts: '': expected a file, such as hosts.toml", ""),
    use("play --power-tier lopp", "--power-tier: 'lopp'; expected one of loop, watermark. Did you mean 'loop'?"),
    use(
        "play --target brokers",
        "unknown target 'brokers': expected one of broker, fluss, kafka, nats, rocketmq. Did you mean 'broker'?",
    ),
    use("play --target kafka:9.9.9", "unknown protocol '9.9.9': expected one of 0.10.2.2, "),
    use("run --target kafka:9.9.9", "unknown release of Apache Kafka '9.9.9': expected one of 0.10.2.2, "),
    use("play --scenario kip101-1c", "unknown scenario 'kip101-1c': expected one of "),
    use("play --scenario ../README", "unknown scenario '../README'"),
    use("play --scenario", "unknown scenario ''", ""),
    use("play --scenario", "unknown scenario 'a\\nb\\x1b[31m'", "a\nb\x1b[31m"),
    use(f"play --scenario {'x' * 100_000}", "unknown scenario 'xxx"),
    use("fetch", "the following arguments are required: TARGET[:VERSION]"),
    use(
        "fetch brokr",
        "unknown target 'brokr': expected one of broker, fluss, kafka, nats, rocketmq. Did you mean 'broker'?",
    ),
    use("fetch kafka:9", "unknown version of kafka '9': expected one of 0.10.2.2, "),
    use("fetch kafka:", "unknown version of kafka '': expected one of 0.10.2.2, "),
    use("fetch folder --targets {folder}", "folder: no target; expected a package with TARGET in __init__"),
    use("test", "the following arguments are required: TARGET[:VERSION]"),
    use("test kafka:9", "unknown version of kafka '9': expected one of 0.10.2.2, "),
    use("test broker --scenario kip101-4", "unknown scenario 'kip101-4'"),
    use("test broker --hots sim", "unrecognized arguments: --hots"),
    use("test broker --host sin", "unknown host 'sin'"),
    use("targets --all", "unrecognized arguments: --all"),
    use("targets nope", "unknown target 'nope': expected one of broker, fluss, kafka, nats, rocketmq."),
    use("targets --targets {missing}", "missing: no such folder; expected one of a target, or of several"),
    use("targets --targets {empty}", "empty: no such folder; expected one of a target, or of several"),
    use("targets folder --targets {folder}", "folder: no target; expected a package with TARGET in __init__"),
    use("run --target folder --targets {folder}", "folder: no target; expected a package with TARGET in __init__"),
    use("run --targets", "argument --targets: expected one argument"),
    use("scenarios kip101-4", "unknown scenario 'kip101-4'"),
    use("test-kafka --release 3.9.1 --scenario nope", "unknown scenario 'nope'"),
    use("play --protocol kip-101", "unknown protocol 'kip-101': expected one of hw, kip101, "),
    use("run --protocol kip999", "unknown protocol 'kip999': expected one of hw, "),
    use("play --protocol", "'kip101 x'; expected PROTOCOL or PROTOCOL+RULE=VALUE", "kip101 x"),
    use("play --protocol hw+truncate_to", "'hw+truncate_to'; expected PROTOCOL or PROTOCOL+RULE=VALUE"),
    use("play --protocol hw+truncate_to=a+truncate_to=b", "rule 'truncate_to' is changed twice"),
    use("play --rule truncate-to=first_fetch", "rule 'truncate-to': no such rule; expected one of "),
    use("play --rule truncate_to=moon", "rule truncate_to='moon': expected one of high_watermark, "),
    use("run --rule fence_fetch", "rule fence_fetch='': expected one of "),
    use("run --rule fence_fetch=no --rule fence_fetch=yes", "rule 'fence_fetch' is changed twice"),
    use("run --nemesis gremlin", "unknown nemesis 'gremlin': expected one of all, cut, "),
    use("run --nemesis kill,", "unknown nemesis ''"),
    use("test-kafka --release 9.9.9", "unknown release of Apache Kafka '9.9.9': expected one of 0.10.2.2, "),
    use("abilities --mising", "unrecognized arguments: --mising. Did you mean '--missing'?"),
    use("clean --yse", "unrecognized arguments: --yse. Did you mean '--yes'?"),
    use("kafka", "required: what"),
    use("kafka lst", "'lst'; expected one of list, fetch. Did you mean 'list'?"),
    use("kafka fetch", "no release named; expected some of 0.10.2.2, "),
    use("kafka fetch 9.9.9", "unknown release of Apache Kafka '9.9.9'"),
    use("kafka list 9.9.9", "unknown release of Apache Kafka '9.9.9'"),
    use("kafka fetch 3.9.1 --repository nonsense", "nonsense cannot be reached: "),
    use("kafka fetch 3.9.1 --repository http://[::1", "Invalid IPv6 URL; expected the jar"),
    use("kafka fetch 3.9.1 --repository {missing}", "cannot be reached: "),
    # Options that exclude each other.
    use("run --time 5 --seeds 5", "--time 5 --seeds 5: expected one of them"),
    use("run --target broker:hw --protocol kip380", "two protocols; expected one of them"),
    use("run --schedule {typo} --seeds 5", "expected one seed"),
    use("run --schedule {scenario} --narrow", "--narrow: expected neither --schedule nor --workload"),
    use("run --workload append --narrow", "--narrow: expected neither --schedule nor --workload"),
    use("run --schedule {scenario} --nemesis kill", "expected no --nemesis, which draws another schedule"),
    use("run --compare-with hw", "expected a host of real processes"),
    use(
        "run --compare-with hw --host local --stop-at-violation",
        "--compare-with hw: expected no --stop-at-violation: whole schedules are compared",
    ),
    use("play --stop-at-violations", "Did you mean '--stop-at-violation'?"),
    use("test-kip101 --stop-at-violation=yes", "--stop-at-violation: ignored explicit argument 'yes'"),
    use("test-kafka --stop-at-violation", "unrecognized arguments: --stop-at-violation"),
    use("run --compare-with hw --host local --time 5", "expected no --time or --stop-at-first"),
    use("run --compare-with kip999 --host local", "unknown protocol 'kip999'"),
    use("run --host sim --target kafka:3.9.1", "target kafka; expected broker"),
    use("run --host sim --power-tier loop", "power tier 'loop'; expected none"),
    use("run --seeds 2 --ports 20000-20999", "ports 20000 to 20999; expected no range"),
    use("play --scenario kip101-1 --protocol kip380+fence_fetch=no", "no expectation for protocol kip380+fence_f"),
    # Schedules.
    use("run --schedule {missing}", "missing: No such file or directory; expected a scenario file"),
    use("run --schedule {folder}", "folder: Is a directory; expected a scenario file"),
    use("run --schedule {empty}", "empty:1: no line 'title'; expected one"),
    use("run --schedule {binary}", "binary:1: byte 0xff is not UTF-8; expected a scenario file"),
    use("run --schedule {json}", "json:1: no line 'title'; expected one"),
    use("run --schedule {typo}", "typo:5: 'kil A': 'kil'; expected one of produce, "),
    use("run --schedule {hungry}", "hungry:4: records 'm1 99999999999'; expected at most 100000 records"),
    use(
        "run --schedule {large}", "large: more than 1,048,576 bytes; expected a scenario file of at most that size"
    ),
    use("run --schedule {pipe}", "pipe: not a regular file; expected a scenario file"),
    use("run --schedule {zero}", "zero: not a regular file; expected a scenario file"),
    use("run --schedule {loop}", "loop: Too many levels of symbolic links"),
    use("run --schedule", "Is a directory; expected a scenario file", ""),
    # Stored suites.
    use("nightly --hours 0", "expected a number above 0"),
    use("nightly --hours 1 --minutes 1", "not allowed with argument --hours"),
    use("nightly --plan {missing}", "No such file or directory; expected a plan of a night"),
    use(
        "nightly --plan {json}",
        "expected a plan of a night, as `fencepost nightly --print-plan` prints one, in TOML",
    ),
    use("nightly --plan {large}", "more than 1,048,576 bytes; expected a plan of a night"),
    use("nightly --host moon", "unknown host 'moon': expected one of docker, local, sim"),
    use("nightly --target kip279", "option --target kip279: expected TARGET:PROTOCOL, such as broker:kip380"),
    use("nightly --target broker:kip999", "unknown protocol 'kip999': expected one of"),
    use("nightly --target kafka:3.9.1 --host sim", "the plan has no play there"),
    use("summary", "required: RESULTS"),
    use("summary {missing}", "no such folder; expected the folder of a suite or a run, or one with suites in it"),
    use("summary {json}", "not a folder; expected the folder of a suite or a run"),
    use("summary {folder}", "no suite in it; expected a folder such as results, or one of its suites"),
    use("summary {s_one} {folder}", "no suite in it; expected a folder such as results"),
    use("summary {s_one} --out {folder}", "already there, and no summary; expected a new name (--out)"),
    use("summary {s_one} --out {json}", "already there, and no summary; expected a new name (--out)"),
    use("summary {s_one} --csv night", "--csv: 'night'; expected one of nights, protocols, "),
    use("summary {s_one} --csv nights --json", "--json: not allowed with argument --csv"),
    use("agree", "required: SUITE"),
    use("agree {s_one}", "required: SUITE"),
    use("agree {s_one} {s_one} {s_one}", "unrecognized arguments: "),
    use("agree {s_one} {s_two}", "has seed 1, "),
    use("agree {missing} {s_one}", "suite.json: No such file or directory; expected a suite's table"),
    use("agree {s_one} {folder}", "suite.json: No such file or directory; expected a suite's table"),
    use("agree {json} {json}", "suite.json: Not a directory; expected a suite's table"),
    use("agree {s_folder} {s_one}", "suite.json: Is a directory; expected a suite's table"),
    use("agree {s_empty} {s_one}", "suite.json: JSONDecodeError: Expecting value: line 1 column 1"),
    use("agree {s_binary} {s_one}", "suite.json:1: byte 0x80 is not UTF-8"),
    use("agree {s_list} {s_one}", "expected a suite's table as Fencepost writes it"),
    use("agree {s_keys} {s_one}", "KeyError: 'cells'; expected a suite's table as Fencepost writes it"),
    use("agree {s_deep} {s_one}", "RecursionError: "),
    use("agree {s_seed} {s_one}", "TypeError: seed is '1'; expected int"),
    use("agree {s_more} {s_one}", "unexpected keyword argument 'colour'"),
    use("agree {s_cell} {s_one}", "KeyError: 'protocol'"),
    use("check", "required: RESULTS"),
    use("check --jepsen", "--jepsen: expected at least one argument"),
    use("check --jepsen", "'': expected a history of Jepsen's, one JSON object a line", ""),
    use("check --jepsen {missing}", "missing: No such file or directory; expected a history of Jepsen's"),
    use("check --jepsen {folder}", "folder: Is a directory; expected a history of Jepsen's"),
    use("check --jepsen {pipe}", "pipe: not a regular file; expected a history of Jepsen's"),
    use("check --jepsen {zero}", "zero: not a regular file; expected a history of Jepsen's"),
    use("check --jepsen {loop}", "loop: "),
    use("check --jepsen {json} {json}", "json: named twice; expected each file once"),
    use("check {folder} --jepsen {json}", "--jepsen with RESULTS: expected only files, which are judged without"),
    use("check --store --jepsen {json}", "--jepsen with --store: expected only files"),
    use("check --master local[2] --jepsen {json}", "--jepsen with --master: expected only files"),
    use("check --conf spark.executor.memory=1g --jepsen {json}", "--jepsen with --conf: expected only files"),
    use("check {folder} --sub-via assign", "--sub-via without --jepsen; expected it only with histories of"),
    use("check {folder} --no-ww-deps", "--ww-deps without --jepsen; expected it only with histories of"),
    use("check --jepsen {json} --sub-via asign", "'asign'; expected one of assign, subscribe. Did you mean"),
    use("check --stoer {s_one}", "Did you mean '--store'?"),
    use("check", "'': expected a folder, such as results", ""),
    use("check {missing}", "missing: No such file or directory; expected a run's folder, a suite's, or one with"),
    use("check {empty}", "empty: Not a directory; expected a run's folder"),
    use("check {pipe}", "pipe: Not a directory; expected a run's folder"),
    use("check {loop}", "loop: "),
    use("check {folder}", "folder: no run there; expected a run's folder"),
    use("check {s_one}", "s_one: no run there; expected a run's folder"),
    use("check {s_empty}", "suite.json: JSONDecodeError: Expecting value: line 1 column 1"),
    use("check {s_folder}", "suite.json: Is a directory; expected a suite's table"),
    use("check {s_deep}", "RecursionError: "),
    # Schedules that are to be shrunk.
    use("shrink", "required: FILE"),
    use("shrink {scenario} --sed 1", "Did you mean '--seed'?"),
    use("shrink {scenario}", "scenario: no history beside it says its seed; expected the option --seed"),
    use("shrink {scenario} --seed 1 --tries 0", "--tries: '0': expected a whole number from 1 to "),
    use("shrink {scenario} --seed 1 --seconds 0", "--seconds: '0': expected a number above 0"),
    use("shrink {scenario} --seed 1 --jobs 0", "--jobs: '0': expected a whole number from 1 to 512"),
    use("shrink {scenario} --seed 1 --protocol kip999", "unknown protocol 'kip999'"),
    use("shrink {scenario} --seed 1 --rule fence=no", "rule 'fence': no such rule; expected one of "),
    use("shrink {scenario} --seed 1 --output {json}", "json: already there; expected a new name (--output)"),
    use(
        "shrink {scenario} --seed 1 --output {missing}/x", "x: no such folder; expected a file in one that exists"
    ),
    use("shrink {missing} --seed 1", "missing: No such file or directory; expected a scenario file"),
    use("shrink {folder}", "folder: no history.jsonl there; expected a run's folder, its history or a schedule"),
    use("shrink {pipe} --seed 1", "pipe: not a regular file; expected a scenario file"),
    use("shrink {typo} --seed 1", "typo:5: 'kil A': 'kil'; expected one of produce, "),
    use("shrink {missing}.jsonl", "missing.jsonl: No such file or directory; expected the history of a run"),
    use("shrink {scenario} --seed 1", "'': expected a file, such as shrunk.txt", "--output", ""),
    use(
        "run --schedule {scenario}",
        "scenario: no expectation for protocol kip380; expected a line 'expect kip380: ",
    ),
    # Log directories.
    use("lineage", "required: DIR"),
    use("lineage --jsn {folder}", "Did you mean '--json'?"),
    use("lineage {missing}", "missing: No such file or directory"),
    use("lineage {empty}", "empty: Not a directory"),
    use("lineage {folder}", "folder: no logs of broker; expected segments (00000000000000000000.log), or "),
    use("lineage --target kafak {folder}", "unknown target 'kafak': expected one of "),
    use("lineage {pipe}", "pipe: Not a directory; expected a directory that can be listed"),
    use("lineage {zero}", "zero: Not a directory; expected a directory that can be listed"),
    # Checks of stored runs on any Spark.
    use(
        "check {folder} --master locl", "--master 'locl': expected local[*], local[N], spark://HOST:PORT, yarn or"
    ),
    use("check {folder} --master spark://there", "--master 'spark://there': expected local[*], "),
    use("check {folder} --master spark://127.0.0.1:1", "127.0.0.1:1: Connection refused; expected a master that"),
    use("check {folder} --conf memory=1g", "--conf 'memory=1g': expected spark.NAME=VALUE, as in "),
    use(
        "check {folder} --conf spark.executor.memory", "--conf 'spark.executor.memory': expected spark.NAME=VALUE"
    ),
    use("check {folder} --conf spark.master=local", "--conf 'spark.master=local': expected --master"),
    use("check viewfs://there/results --store", "--store viewfs://there/results: expected local folders, which"),
    use("check {folder} --mastr local", "Did you mean '--master'?"),
    # Results.
    use("run --seeds 2 --results {empty}", "empty: Not a directory; expected a folder that can be written"),
    use("run --seeds 2 --results {empty}/below", "below: Not a directory; expected a folder that can be written"),
    use("run --seeds 2 --results", "'': expected a folder, such as results", ""),
)

# Every other program that takes arguments, as a real process.
MODULES: Final = (
    use("harness.cli.main play --hots", "fencepost: unrecognized arguments: --hots"),
    use(
        "harness.docs.pages --chek", "harness.docs.pages: unrecognized arguments: --chek. Did you mean '--check'?"
    ),
    use("harness.docs.pages --picture {missing}", "missing: No such file or directory; expected a suite's table"),
    use("harness.docs.pages --picture {binary}", "binary:1: byte 0xff is not UTF-8"),
    use("harness.docs.pages --check --picture {json}", "not allowed with argument --check"),
    use("harness.java --prob", "harness.java: arguments '--prob'; expected none, or --probe"),
    use("harness.hosts.images --bse x", "Did you mean '--base'?"),
    use("targets.kafka.lock", "targets.kafka.lock: no release named"),
    use("targets.kafka.lock 9.9.9", "unknown release of Apache Kafka '9.9.9'"),
    use("checkers.spark.archive --now", "checkers.spark.archive: arguments '--now'; expected none"),
    use("targets.broker", "python -m targets.broker: the following arguments are required: --config"),
    use("targets.broker --conf {config}", "--config"),
    use("targets.broker --config {missing}", "No such file or directory"),
    use("targets.broker --config {folder}", "Is a directory"),
    use("targets.broker --config {binary}", "can't decode byte 0xff"),
    use("targets.broker --config {empty}", "Expecting value"),
    use("targets.broker --config {config}", "advertised_client, "),
    use("targets.broker --config {s_deep}/suite.json", "maximum recursion depth"),
    use("benchmarks.broker --seconds x", "--seconds: 'x': expected a number above 0"),
    use("benchmarks.broker --repeats 0", "--repeats: '0': expected a whole number from 1 to 1000"),
    use("benchmarks.broker --protocol kip999", "unknown protocol 'kip999'"),
    use("benchmarks.search kip999", "unknown protocol 'kip999'"),
    use("benchmarks.search --jobs -1", "--jobs: '-1': expected a whole number from 1 to 512"),
    use("benchmarks.behaviour", "required: command"),
    use("benchmarks.behaviour dump {missing} --seeds 0", "--seeds: '0': expected a whole number from 1"),
    use("benchmarks.executors {missing}", "missing: no such folder; expected a suite's"),
    use("benchmarks.live --records 1", "--records: '1': expected a whole number from 100 to 10000000"),
    use("benchmarks.checking x", "'x': expected a whole number from 1 to 100000"),
    use("benchmarks.checking 1 {missing}", "missing: no history there; expected a suite's folder"),
    use("benchmarks.checkers --records 1", "'1': expected a whole number from 3000 to 1000000000"),
    use("benchmarks.spark_workers --workers 0", "--workers: '0': expected a whole number from 1 to 64"),
    use("benchmarks.checkers --folder {missing}", "missing: no such folder; expected one with room"),
)

"""
A node of mylog, `python server.py CONFIG`: the leader appends, others copy; what all in sync have is committed.
Its log is a file, with a line for a record and the epoch in front. CHANGED is the lock of all.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

from shared import NOTHING, ask, change, leave, read

GONE_S, TICK_S, WAIT_S, CHANGED = 5.0, 0.1, 3.0, threading.Condition()
CONFIG = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
ME, TRUTH, EARLY = CONFIG["name"], Path(CONFIG["truth"]), CONFIG["early"]


class Log:
    def __init__(self):
        self.now, self.committed, self.begun, self.ends = NOTHING, 0, 0, {}
        self.file = (Path(CONFIG["folder"]) / "log").open("a+b", buffering=0)
        os.fsync(os.open(CONFIG["folder"], os.O_RDONLY))  # the folder has the file's name
        self.file.seek(0)
        self.lines = [line for line in self.file.read().splitlines(keepends=True) if line.endswith(b"\n")]
        self.keep(len(self.lines))

    def keep(self, end, more=()):
        """Cut the log at an offset, append these lines there, and have it all on the disk."""
        self.lines = self.lines[:end]
        self.file.truncate(sum(map(len, self.lines)))
        self.file.write(b"".join(more))
        os.fsync(self.file.fileno())
        self.lines += more

    def last_epoch(self, end):
        return int(self.lines[end - 1].split()[0]) if end else 0

    def learn(self, now):
        """Take up what is true, and commit; a new leader does not know what the others have."""
        if now["epoch"] > self.now["epoch"]:
            self.committed, self.ends, self.begun = 0, {}, len(self.lines)
        self.now = max(self.now, now, key=lambda each: each["number"])
        ends = [self.ends.get(each, 0) for each in self.now["in_sync"] if each != ME]
        self.committed = max(self.committed, min([len(self.lines), *ends]))
        CHANGED.notify_all()

    def answer(self, asked):
        """Answer a client, or a node that copies, as the leader alone can; with the lock."""
        epoch, end = self.now["epoch"], len(self.lines)
        if self.now["leader"] != ME or asked.get("epoch", epoch) != epoch:
            return {"refused": f"{ME} does not lead"}
        if "produce" in asked:
            self.keep(end, [f"{epoch} {asked['produce']}\n".encode()])
            self.learn(self.now)
            done = CHANGED.wait_for(lambda: EARLY or self.committed > end or self.now["epoch"] > epoch, WAIT_S)
            return {"offset": end} if done and self.now["epoch"] == epoch else {"unknown": "not committed"}
        if "read" in asked:
            lines = [line.decode() for line in self.lines[asked["read"] : self.committed][:100]]
            return {"lines": lines} if self.committed >= self.begun else {"refused": f"{ME} has just begun"}
        if asked["copy"] > end or self.last_epoch(asked["copy"]) != asked["last"]:
            return {"cut": min(asked["copy"] - 1, end)}
        return self.copied(asked["by"], asked["copy"])

    def copied(self, name, end):
        """Note that a node has all up to here; return what comes next, as soon as there is something."""
        now, epoch, self.ends[name] = self.now, self.now["epoch"], end
        if end == len(self.lines) and name in now["members"] and name not in now["in_sync"]:
            names = {"in_sync": sorted([*now["in_sync"], name])}  # with the lock: nothing is committed meanwhile
            now = change(TRUTH, lambda then: names if then["epoch"] == epoch else {})
        self.learn(now)
        CHANGED.wait_for(lambda: len(self.lines) > end, TICK_S)
        return {"lines": [line.decode() for line in self.lines[end : end + 100]]}


LOG = Log()


class Serving(StreamRequestHandler):
    def handle(self):
        asked = json.loads(self.rfile.readline())
        with CHANGED:
            answer = LOG.answer(asked)
        self.wfile.write(json.dumps(answer).encode() + b"\n")


def follow(leader):
    """Copy what comes next, or cut what the leader has not; return whether there was an answer to do so."""
    end = len(LOG.lines)
    question = {"copy": end, "by": ME, "epoch": LOG.now["epoch"], "last": LOG.last_epoch(end)}
    try:
        answer = ask(CONFIG["nodes"][leader], question, 1.0)
    except (OSError, ValueError):
        return False  # it is gone, or cut off
    with CHANGED:
        if "cut" in answer:
            print(f"cut to {answer['cut']}", flush=True)
        LOG.keep(answer.get("cut", end), [line.encode() for line in answer.get("lines", ())])
    return "refused" not in answer


def live(member, alive):
    """Say that this node lives, see which ones do not, take up what is true, and copy."""
    while True:
        TRUTH.with_suffix(f".{ME}").touch()
        now, clock = read(TRUTH)[-1], time.monotonic()
        now = now if now["members"].get(ME) == member else change(TRUTH, join)
        member = now["members"][ME]
        for name in now["members"]:
            touched = TRUTH.with_suffix(f".{name}").stat().st_mtime_ns
            alive[name] = alive[name] if alive.get(name, (0, 0))[0] == touched else (touched, clock)
            if clock - alive[name][1] > GONE_S:
                change(TRUTH, leave, name)
        with CHANGED:
            LOG.learn(now)
        if now["leader"] in (ME, None) or not follow(now["leader"]):
            threading.Event().wait(TICK_S)


def join(now):
    """Begin a membership; who leads already, or alone may lead, leads in a new epoch."""
    found = {"members": now["members"] | {ME: now["number"] + 1}, "in_sync": now["in_sync"] or [ME]}
    leads = now["leader"] == ME or (now["leader"] is None and ME in found["in_sync"])
    return found | ({"leader": ME, "epoch": now["epoch"] + 1} if leads else {})


ThreadingTCPServer.allow_reuse_address = ThreadingTCPServer.daemon_threads = True
for address in CONFIG["listen"]:
    threading.Thread(target=ThreadingTCPServer(tuple(address), Serving).serve_forever, daemon=True).start()
live(0, {})

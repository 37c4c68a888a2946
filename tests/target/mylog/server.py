"""A node of mylog, `python server.py CONFIG`: the leader appends, others copy; what all in sync have is committed."""

import json
import os
import sys
import threading
import time
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

from shared import NOTHING, ask, change, elected, leave, read

GONE_S, TICK_S, WAIT_S = 2.0, 0.1, 3.0
CONFIG = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
ME, TRUTH, CHANGED = CONFIG["name"], Path(CONFIG["truth"]), threading.Condition()


class Log:
    """This node's copy: a file, a line for a record, with its epoch in front. CHANGED is its lock."""

    def __init__(self):
        self.file = (Path(CONFIG["folder"]) / "log").open("a+b", buffering=0)
        os.fsync(os.open(CONFIG["folder"], os.O_RDONLY))  # the folder has the file's name
        self.file.seek(0)
        self.lines = [line for line in self.file.read().splitlines(keepends=True) if line.endswith(b"\n")]
        self.keep(len(self.lines))
        self.learn(NOTHING)

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
        """Take up what is true, and commit; a new leader does not know yet what the others have."""
        if now is NOTHING or now["epoch"] != self.now["epoch"]:
            self.committed, self.ends = 0, {}
        self.now = now
        ends = [self.ends.get(each, 0) for each in now["in_sync"] if each != ME]
        self.committed = max(self.committed, min([len(self.lines), *ends]))
        CHANGED.notify_all()

    def answer(self, asked):
        """Answer a client, or a node that copies, as the leader alone can."""
        epoch, end = self.now["epoch"], len(self.lines)
        if self.now["leader"] != ME or asked.get("epoch", epoch) != epoch:
            return {"refused": f"{ME} does not lead"}
        if "produce" in asked:
            self.keep(end, [f"{epoch} {asked['produce']}\n".encode()])
            self.learn(self.now)
            CHANGED.wait_for(lambda: self.committed > end or self.now["epoch"] != epoch or CONFIG["early"], WAIT_S)
            done = CONFIG["early"] or (self.committed > end and self.now["epoch"] == epoch)
            return {"offset": end} if done else {"unknown": "not committed in time"}
        if "read" in asked:
            return {"lines": [line.decode() for line in self.lines[asked["read"] : self.committed][:100]]}
        if asked["copy"] > end or self.last_epoch(asked["copy"]) != asked["last"]:
            return {"cut": min(asked["copy"] - 1, end)}
        return self.copied(asked["by"], asked["copy"])

    def copied(self, name, end):
        """Note that a node has all up to here; return what comes next, as soon as there is something."""
        self.ends[name] = end
        if end == len(self.lines) and name in self.now["members"] and name not in self.now["in_sync"]:
            epoch, names = self.now["epoch"], [*self.now["in_sync"], name]  # nothing is committed meanwhile
            self.now = change(TRUTH, lambda now: {"in_sync": names} if now["epoch"] == epoch else {})
        self.learn(self.now)
        CHANGED.wait_for(lambda: len(self.lines) > end, TICK_S)
        return {"lines": [line.decode() for line in self.lines[end : end + 100]]}


with CHANGED:
    LOG = Log()


class Serving(StreamRequestHandler):
    def handle(self):
        with CHANGED:
            answer = LOG.answer(json.loads(self.rfile.readline()))
        self.wfile.write(json.dumps(answer).encode() + b"\n")


def follow():
    """Copy what the leader has, for ever."""
    while True:
        with CHANGED:
            CHANGED.wait_for(lambda: LOG.now["leader"] not in (ME, None))
            now, end = LOG.now, len(LOG.lines)
        question = {"copy": end, "by": ME, "epoch": now["epoch"], "last": LOG.last_epoch(end)}
        try:
            answer = ask(CONFIG["nodes"][now["leader"]], question, 1.0)
        except (OSError, ValueError):
            answer = {"refused": "the leader is gone, or cut off"}
        time.sleep(TICK_S if "refused" in answer else 0)
        with CHANGED:
            if now["epoch"] == LOG.now["epoch"] and "refused" not in answer:
                LOG.keep(answer.get("cut", end), [line.encode() for line in answer.get("lines", ())])
                print(f"cut to {answer['cut']}" if "cut" in answer else "", end="\n" * ("cut" in answer), flush=True)


def live(alive, member=0):
    """Say that this node lives, see which ones do not, and take up what is true."""
    while True:
        TRUTH.with_suffix(f".{ME}").touch()
        now, clock = read(TRUTH)[-1], time.monotonic()
        if now["members"].get(ME, -1) != member:
            now = change(TRUTH, join)
            member = now["members"][ME]
        for name in now["members"]:
            touched = TRUTH.with_suffix(f".{name}").stat().st_mtime_ns
            alive[name] = alive[name] if alive.get(name, (0, 0))[0] == touched else (touched, clock)
            if clock - alive[name][1] > GONE_S:
                change(TRUTH, leave, name)
        with CHANGED:
            LOG.learn(now)
        time.sleep(TICK_S)


def join(now):
    """Begin a membership; who leads already, or alone may lead, leads in a new epoch."""
    found = {"members": now["members"] | {ME: now["number"] + 1}, "in_sync": now["in_sync"] or [ME]}
    leads = now["leader"] == ME or (now["leader"] is None and ME in found["in_sync"])
    return found | (elected(now, ME) if leads else {})


ThreadingTCPServer.allow_reuse_address = ThreadingTCPServer.daemon_threads = True
for address in CONFIG["listen"]:
    threading.Thread(target=ThreadingTCPServer(tuple(address), Serving).serve_forever, daemon=True).start()
threading.Thread(target=follow, daemon=True).start()
live({})

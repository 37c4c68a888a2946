"""
What is true of a cluster of mylog: a file that only grows, a line for a change, so that nobody ever holds a lock.
Of two changes with one number the first has an effect; the other is made again.
"""

import json
import socket

NOTHING = {"number": 0, "members": {}, "leader": None, "epoch": 0, "in_sync": []}


def read(file):
    """Return what was true after each change, from the first on."""
    found = [NOTHING]
    for line in file.read_bytes().splitlines(keepends=True) if file.exists() else ():
        if line.endswith(b"\n") and (now := json.loads(line))["number"] == len(found):
            found.append(now)
    return found


def change(file, alter, *words):
    """Have a function say what becomes true, until it was first; return what is true then."""
    while True:
        before = read(file)[-1]
        now = {**before, **alter(before, *words), "number": before["number"] + 1}
        with file.open("ab", buffering=0) as end:
            end.write(json.dumps(now).encode() + b"\n")
        if read(file)[now["number"]] == now:
            return now


def lead(now, name):
    return {"leader": name, "epoch": now["epoch"] + 1} if name in now["in_sync"] else {}


def leave(now, name):
    """End a membership; the next one in sync leads. The last ones in sync stay so: they have what is committed."""
    members = {each: number for each, number in now["members"].items() if each != name}
    left = [each for each in now["in_sync"] if each in members]
    found = {"members": members, "in_sync": left or now["in_sync"]}
    return found | ({"leader": [*left, None][0], "epoch": now["epoch"] + 1} if now["leader"] == name else {})


def ask(address, question, patience_s):
    """Return what a node answers. Question and answer are a line of JSON each, on a connection of their own."""
    with socket.create_connection(address, patience_s) as connection, connection.makefile("rwb", 0) as lines:
        lines.write(json.dumps(question).encode() + b"\n")
        return json.loads(lines.readline())

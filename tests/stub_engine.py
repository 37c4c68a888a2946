"""
A Docker engine's HTTP interface on a Unix socket: containers, networks and images are listed and removed.

Its containers have no processes: one that was started runs until it is killed or removed.
"""

from __future__ import annotations

import json
import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Labels = dict[str, str]


@dataclass(slots=True)
class StubEngine:
    """
    What the engine has, and what other processes do to it between two requests.

    Attributes:
        containers: id -> its name and labels, as the engine lists them.
        networks: the same of networks.
        images: tag -> what the engine lists of that image.
        made_of: id of a container -> id of its image.
        vanished: ids that are listed, and removed before the next request.
        running: ids of containers that run.
        removing: ids that another process is removing: a removal conflicts, and the next look finds nothing.
        removed: ids in the order in which this engine was asked to remove them.
        on_list: called whenever containers are listed.
    """

    containers: dict[str, tuple[str, Labels]] = field(default_factory=dict)
    networks: dict[str, tuple[str, Labels]] = field(default_factory=dict)
    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    made_of: dict[str, str] = field(default_factory=dict)
    vanished: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    removing: set[str] = field(default_factory=set)
    removed: list[str] = field(default_factory=list)
    on_list: Any = None

    def answer(self, method: str, path: str, name: str = "", body: Any = None) -> tuple[int, Any]:
        """
        Return the status and the JSON body of an answer.

        Args:
            name: what a container that is to be made shall be called.
            body: the JSON of the request.
        """
        if path.endswith("/_ping"):
            return 200, "OK"
        if path.endswith("/version"):
            return 200, {"ApiVersion": "1.41"}
        if path.endswith("/containers/json"):
            if self.on_list is not None:
                self.on_list()
            made_of = self.made_of.get
            listed = [(id_, f"/{name}") for id_, (name, _) in self.containers.items()]
            return 200, [{"Id": id_, "Names": [name], "ImageID": made_of(id_)} for id_, name in listed]
        if path.endswith("/images/json"):
            return 200, [{"RepoTags": [tag], **image} for tag, image in self.images.items()]
        if path.endswith("/networks"):
            found = self.networks.items()
            return 200, [{"Id": id_, "Name": name, "Labels": labels} for id_, (name, labels) in found]
        if path.endswith("/create"):
            kept = self.containers if "/containers/" in path else self.networks
            id_ = f"made-{len(self.containers) + len(self.networks)}-{name or body['Name']}"
            kept[id_] = (name or body["Name"], body["Labels"])
            return 201, {"Id": id_}
        if image := re.search(r"/images/([^/]+?)(?:/json)?$", path):
            return self._about_image(method, image[1])
        one = re.search(r"/(containers|networks)/([^/]+)(?:/(\w+))?$", path)
        assert one is not None, f"the stub has no answer to {method} {path}"
        if method == "POST":
            return self._act(one[2], one[3])
        return self._about_one(method, getattr(self, one[1]), one[2])

    def _about_image(self, method: str, tag: str) -> tuple[int, Any]:
        if tag not in self.images:
            return 404, {"message": f"No such image: {tag}"}
        image = self.images[tag]
        if method == "GET":
            return 200, {"RepoTags": [tag], **image}
        if image["Id"] in self.made_of.values():
            return 409, {"message": f"conflict: image {tag} is being used by a container"}
        self.removed.append(tag)
        del self.images[tag]
        return 200, []

    def _act(self, id_: str, act: str) -> tuple[int, Any]:
        if act == "start":
            self.running.add(id_)
        elif act == "kill":
            self.running.discard(id_)
        return 204, None

    def _about_one(self, method: str, kept: dict[str, tuple[str, Labels]], id_: str) -> tuple[int, Any]:
        if id_ in self.vanished or id_ not in kept:
            return 404, {"message": f"No such container: {id_}"}
        name, labels = kept[id_]
        if method == "GET":
            state = {"Running": id_ in self.running, "Paused": False, "ExitCode": 137}
            about = {"Id": id_, "Name": f"/{name}", "Config": {"Labels": labels, "Tty": True}, "Labels": labels}
            return 200, {**about, "State": state, "IPAM": {"Config": [{"Subnet": "192.0.2.0/24"}]}}
        if id_ in self.removing:
            self.vanished.add(id_)
            return 409, {"message": f"removal of container {id_} is already in progress"}
        self.removed.append(id_)
        del kept[id_]
        return 204, None


@contextmanager
def serving(engine: StubEngine, path: Path) -> Iterator[str]:
    """
    Serve the engine on a Unix socket at this path; yield the value for DOCKER_HOST.

    At its end it is gone as an engine that stops: its connections end, and nobody listens on the socket.
    """
    stopping = threading.Event()
    path.unlink(missing_ok=True)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked = urlsplit(self.path)
            if asked.path.endswith("/events"):
                self.send_response(200)
                self.end_headers()
                stopping.wait()
                return
            length = int(self.headers.get("Content-Length") or 0)
            sent = json.loads(self.rfile.read(length)) if length else None
            name = "".join(parse_qs(asked.query).get("name", []))
            status, body = engine.answer(self.command, asked.path, name, sent)
            text = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                with suppress(ConnectionError):  # its client may have ended
                    self.wfile.write(text)

        do_GET = do_HEAD = do_DELETE = do_POST = _answer

        def address_string(self) -> str:
            return "stub"

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    with Server(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"unix://{path}"
        finally:
            stopping.set()
            server.shutdown()
            thread.join()

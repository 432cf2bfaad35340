"""`mastery watch`: serve the page on this machine, live while runs train.

It serves the page's static files from memory, and the data of the given run directories by key. It
never uses any part of a request as a path. It refuses requests with a foreign host name, so that a
page elsewhere whose name resolves to this machine (DNS rebinding) learns nothing. If other machines
can reach it, it asks for a token.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import json
import re
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

from mastery.errors import MasteryError
from mastery.page import data
from mastery.page.access import REFUSED, Token
from mastery.page.clips import Clip, Player, Wanted, moment_of
from mastery.page.files import parts, static
from mastery.page.places import Place, Problem, find_places
from mastery.page.thinned import as_bytes
from mastery.rundir.database import is_training
from mastery.rundir.parts import changed, is_folder, parts_of

PORT = 8765
FRESH = 0.4  # seconds for which the list of jobs is cached, for all pages
CLIPS = 96  # the most kept, of about 40 kB
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


class Watched:
    """The watched folders. Reads again only what has changed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._lock, self._playing = threading.Lock(), threading.Lock()
        self._read = 0.0  # when the index was last read
        self._places: dict[str, Place] = {}
        self._entries: dict[Place, tuple[Any, data.Entry | Problem]] = {}
        self._tails: dict[Place, data.Tail] = {}
        self._index, self._tag = b"", ""
        self._clips: OrderedDict[tuple[Any, ...], Clip] = OrderedDict()
        self._player = Player()

    def index(self) -> tuple[bytes, str]:
        """The list of jobs as JSON, and a tag that changes with it."""
        with self._lock:
            if time.monotonic() - self._read > FRESH or not self._index:
                self._read_index()
                self._read = time.monotonic()
            return self._index, self._tag

    def _read_index(self) -> None:
        places, problems = find_places(self._folders)
        self._places = {place.key: place for place in places}
        self._entries = {p: self._entry(p) for p in places}
        self._tails = {p: self._tails.get(p) or data.Tail() for p in places}
        found = [entry for _, entry in self._entries.values()]
        problems += [entry for entry in found if isinstance(entry, Problem)]
        entries = [entry for entry in found if not isinstance(entry, Problem)]
        self._index = json.dumps(data.index(entries, problems, live=True)).encode()
        self._tag = _tag(self._index)

    def _entry(self, place: Place) -> tuple[Any, data.Entry | Problem]:
        now = _signature(place.path)
        before = self._entries.get(place)
        if before is not None and before[0] == now:
            return before
        try:
            return now, data.job_entry(place, locked=now[0])
        except MasteryError as error:
            return now, Problem(str(place.path), str(error))

    def curves(self, key: str, query: str) -> dict[str, Any] | None:
        """A job's curves, or only what is new; None if there is no such job."""
        place = self._place(key)
        if place is None:
            return None
        given = {name: values[0] for name, values in parse_qs(query).items()}
        # a longer number fits no job, and int() refuses one of thousands of digits
        asked = {name: int(v) for name, v in given.items() if re.fullmatch("[0-9]{1,15}", v)}
        try:
            return data.job_curves(
                place,
                asked.get("bins"),
                asked.get("from", 0),
                asked.get("sessions"),
                as_bytes,
                self._tails.get(place),
            )
        except MasteryError as error:
            return {"error": str(error)}

    def clip(self, key: str, task: int, run: int, frames: int | None = None) -> Clip | None:
        """A clip of a run's agent on a task, at the last moment until these frames; made one at a
        time, and cached. None if there is no such job, task or run."""
        self.index()  # there may be a new checkpoint
        place = self._place(key)
        entry = None if place is None else self._entries[place][1]
        if place is None or not isinstance(entry, dict) or not entry["clips"]:
            return None
        tasks = entry["curriculum"]["tasks"]
        if task >= len(tasks) or run >= len(entry["runs"]):
            return None
        at = moment_of(entry, run, frames)
        if at is None:
            return {"error": "no agent of this run was kept from that time"}
        which = (key, entry["created"], task, run, at)
        with self._playing:
            if which not in self._clips:
                found = self._player.clip(Wanted(place.path, tasks[task], run, at))
                if "gif" not in found:
                    return found
                self._clips[which] = found
                while len(self._clips) > CLIPS:
                    self._clips.popitem(last=False)
            return self._clips[which]

    def _place(self, key: str) -> Place | None:
        if not self._index:
            self.index()
        return self._places.get(key)


class Server(ThreadingHTTPServer):
    """An HTTP server of the page for some folders.

    Args:
        folders: Run directories, or folders of them.
        host: The address to serve at.
        port: The port; 0 takes a free one.
        token: The token to ask for. If None, a server that other machines can reach asks for a
            random one, and others ask for none.

    Attributes:
        open: Whether other machines can reach it.
    """

    daemon_threads = True
    request_queue_size = 128  # a full queue makes the next client wait a second

    def __init__(
        self,
        folders: Sequence[Path],
        host: str = "127.0.0.1",
        port: int = PORT,
        token: str | None = None,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.watched = Watched(folders)
        self.files = {f"/{name}": static(name).encode() for name in ["page.html", *parts()]}
        self.files["/"] = self.files.pop("/page.html")
        self.tags = {name: _tag(content) for name, content in self.files.items()}
        self.names = {"localhost", "127.0.0.1", "::1", host.lower()}
        self.open = not is_loopback(host)  # reachable from other machines
        if self.open:
            self.names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self.token = Token(token) if self.open or token is not None else None
        super().__init__((host, port), Handler)

    @property
    def address(self) -> str:
        """What to open in a browser; with the token, so only for whoever started the server."""
        return self.url + (self.token.query if self.token else "")

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        host = str(host)
        host = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server. If the server is open to other machines, any
        numeric address counts: it cannot be rebound by DNS."""
        name = re.fullmatch(r"\[([0-9a-fA-F:.]+)\](?::\d+)?|([\w.-]+)(?::\d+)?", host)
        if name is None:
            return False
        plain = (name[1] or name[2]).lower()
        return plain in self.names or (self.open and _address(plain) is not None)


class Handler(BaseHTTPRequestHandler):
    """Answers one connection: static files, the list of jobs, curves and clips."""

    server: Server
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # so that every answer has headers
    server_version, sys_version = "mastery", ""
    timeout = 60  # seconds, for a silent connection
    wbufsize = -1  # buffered: headers and body are sent together

    def do_GET(self) -> None:
        if not self.server.knows(self.headers.get("Host", "")):
            self._say(HTTPStatus.FORBIDDEN, f"unknown host; open {self.server.url}")
        elif self._foreign():
            self._say(HTTPStatus.FORBIDDEN, "cross-site request refused")
        elif self._admitted():
            self._answer()

    do_HEAD = do_GET

    def _foreign(self) -> bool:
        """Whether the request comes from another site, except a link to the page itself."""
        own = self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        to_page = self.path.partition("?")[0] == "/"
        return not own and not (to_page and self.headers.get("Sec-Fetch-Dest") == "document")

    def _admitted(self) -> bool:
        """Whether the request has the token, if one is needed. If not, or if the token is in the
        address, this answers the request."""
        token, port = self.server.token, int(self.server.server_address[1])
        path, _, query = self.path.partition("?")
        if token is None:
            return True
        given = token.in_query(query) if path == "/" else None
        if given:
            self._exchange(token.set_cookie(port))
            return False
        admitted = given is None and token.in_headers(self.headers, port)
        if not admitted:
            self._say(HTTPStatus.FORBIDDEN, REFUSED)
        return admitted

    def _exchange(self, cookie: str) -> None:
        """Set the cookie, and lead to the address without the token."""
        if self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
            extra = {"Set-Cookie": cookie, "Location": "./"}
            self._say(HTTPStatus.SEE_OTHER, "the page is at /", **extra)
        else:  # after a link on another site, browsers send strict cookies only to our own links
            page = b'<!doctype html><meta http-equiv="refresh" content="0;url=./">'
            self._send(page, "text/html; charset=utf-8", extra={"Set-Cookie": cookie})

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        watched, files = self.server.watched, self.server.files
        if path in files:
            kind = TYPES[Path(path).suffix or ".html"]
            self._send(files[path], f"{kind}; charset=utf-8", self.server.tags[path])
        elif path == "/index.json":
            body, tag = watched.index()
            self._send(*_json(body), tag)
        elif found := re.fullmatch(r"/curves/([0-9a-f]{12})", path):
            self._send_found(watched.curves(found[1], query))
        elif found := re.fullmatch(
            r"/clip/([0-9a-f]{12})/([0-9]{1,6})/([0-9]{1,6})(?:/([0-9]{1,19}))?", path
        ):
            frames = None if found[4] is None else int(found[4])
            self._send_found(watched.clip(found[1], int(found[2]), int(found[3]), frames))
        else:
            self._say(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _send_found(self, found: dict[str, Any] | None) -> None:
        if found is None:
            self._say(HTTPStatus.NOT_FOUND, "there is no such job")
        else:
            self._send(*_json(json.dumps(found, separators=(",", ":")).encode()))

    def _say(self, status: HTTPStatus, text: str, **extra: str) -> None:
        self._send(text.encode(), "text/plain; charset=utf-8", status=status, extra=extra)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses, with the same headers as every other answer."""
        self.close_connection = True  # where the next request begins is not known
        if code == HTTPStatus.NOT_IMPLEMENTED:  # its answer to every method without a do_…
            only = "this page can only be read; use GET or HEAD"
            self._say(HTTPStatus.METHOD_NOT_ALLOWED, only, Allow="GET, HEAD", Connection="close")
        else:
            status = HTTPStatus(code)
            self._say(status, status.phrase.lower(), Connection="close")

    def _send(
        self,
        body: bytes,
        kind: str,
        tag: str = "",
        status: HTTPStatus = HTTPStatus.OK,
        extra: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        same = bool(tag) and self.headers.get("If-None-Match") == tag
        self.send_response(HTTPStatus.NOT_MODIFIED if same else status)
        for name, value in (
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", "no-cache" if tag else "no-store"),
            *extra.items(),
        ):
            self.send_header(name, value)
        if tag:
            self.send_header("ETag", tag)
        if not same:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not same and self.command != "HEAD":
            self.wfile.write(body)

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # the client has disconnected
            super().handle()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def open_server(
    folders: Sequence[Path], host: str, port: int | None, token: str | None = None
) -> Server:
    """Start a server at this port.

    Args:
        folders: Run directories, or folders of them.
        host: The address to serve at.
        port: The port; None takes the first free one of the 50 from 8765 on.
        token: See `Server`.

    Raises:
        MasteryError: The address or the port cannot be used, or the token is empty.
    """
    for tried in range(PORT, PORT + 50) if port is None else (port,):
        try:
            return Server(folders, host, tried, token)
        except OSError as error:
            reason = error.strerror or str(error)
    where = f"{host} port {port}" if port is not None else f"{host} from port {PORT} on"
    raise MasteryError(f"cannot serve at {where}: {reason}; give another --host or --port")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _signature(path: Path) -> tuple[Any, ...]:
    """A value that changes when a job does; first, whether a process trains it."""
    parts = [path]
    with contextlib.suppress(OSError, MasteryError):  # listing the parts of a job
        parts = parts_of(path) if is_folder(path) else parts
    return any(map(is_training, parts)), *((part.name, changed(part)) for part in parts)


def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:20]}"'


def _json(body: bytes) -> tuple[bytes, str]:
    return body, "application/json"

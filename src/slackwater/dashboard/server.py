"""The server of the dashboard: the page, its data so far, new lines, and commands.

| address | |
| --- | --- |
| `/` | the page |
| `/lines.json` | all lines so far, as columns |
| `/events` | new lines (server-sent events), those after `Last-Event-ID` |
| `/metrics` | for Prometheus, if the caller gave a function for it |
| `/control` | POST: change the target or the slack |
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from slackwater.dashboard.assemble import page
from slackwater.dashboard.control import Control, settings_of
from slackwater.dashboard.guard import Guard, RefusedError, is_loopback
from slackwater.dashboard.history import History
from slackwater.errors import QueryError, SlackwaterError
from slackwater.metrics.progress import ProgressLine

LOOPBACK = "127.0.0.1"
MOST_BYTES = 1_000  # of a request to change something

_KEEP_ALIVE_S = 15.0
_TOKEN = re.compile(r"[A-Za-z0-9_-]{8,200}")
_RETRY_MS = 1_000
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Content:
    """The data behind the page."""

    history: History
    control: Control | None = None
    no_control: str = "This run cannot be commanded."  # the reason, without a control
    is_live: bool = True  # whether more lines may come
    exposition: Callable[[Mapping[str, ProgressLine]], str] | None = None  # the text for Prometheus

    def known(self) -> dict[str, Any]:
        """Return the data that a page starts with."""
        control = {"can": self.control is not None, "why": self.no_control}
        if self.control is not None:
            control |= {"query": self.control.query}
        return {"live": self.is_live, "control": control} | self.history.known()


class Dashboard:
    """Serves a page until it is closed.

    Parameters
    ----------
    history
        The progress of queries; lines may be added while it is served.
    host, port
        Where to listen; port 0 means any free port.
    token
        Required of every request; generated where other machines can reach the server.
    control, no_control
        How to send commands to the query, or why that is not possible.
    is_live
        Whether more lines may come.
    exposition
        Makes the text for Prometheus of the last line of each query, by name.
    """

    def __init__(
        self,
        history: History,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        token: str | None = None,
        control: Control | None = None,
        no_control: str = Content.no_control,
        is_live: bool = True,
        exposition: Callable[[Mapping[str, ProgressLine]], str] | None = None,
    ) -> None:
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(16)
        if token is not None and not _TOKEN.fullmatch(token):
            msg = "a token must have 8 or more letters, digits, - and _, got another"
            raise QueryError(msg)
        content = Content(history, control, no_control, is_live, exposition)
        try:
            self._server = _Server(host, port, token, content)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            msg = f"the dashboard cannot listen on {host} port {port}: {why}"
            raise QueryError(msg) from error
        shown = f"[{host}]" if ":" in host else host
        parameters = "" if token is None else f"?token={token}"
        self.url = f"http://{shown}:{self._server.server_port}/{parameters}"
        self._thread = Thread(target=self._server.serve_forever, name="slackwater-dashboard")
        self._thread.daemon = True

    def __enter__(self) -> Dashboard:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.is_over.set()
        self._server.content.history.wake()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 32

    def __init__(self, host: str, port: int, token: str | None, content: Content) -> None:
        if ":" in host:
            self.address_family = AF_INET6
        self.content = content
        self.is_over = Event()
        self.serving = secrets.token_hex(4)  # a page of an earlier server starts again
        super().__init__((host, port), _Handler)
        self.guard = Guard(host, self.server_port, token)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a page that was closed."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "slackwater"
    sys_version = ""
    timeout = 60  # of a client that neither sends nor reads

    def do_GET(self) -> None:  # noqa: N802
        """Answer a GET request."""
        self._guarded(self._get)

    def do_HEAD(self) -> None:  # noqa: N802
        """Answer with the headers of GET."""
        self._guarded(self._get)

    def do_POST(self) -> None:  # noqa: N802
        """Answer a POST request: a command."""
        self._guarded(self._post)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: the terminal belongs to the command that runs."""

    def _guarded(self, answer: Callable[[str, dict[str, list[str]]], None]) -> None:
        address = urlsplit(self.path)
        parameters = parse_qs(address.query)
        guard, given = self.server.guard, self.headers.get
        try:
            guard.check_host(given("Host"))
            token = parameters.get("token", [None])[0]
            guard.check_token(given("Authorization"), given("Cookie"), token)
            answer(address.path, parameters)
        except RefusedError as error:
            self.close_connection = True  # the rest of the request is not read
            self._send(error.status, "text/plain", f"{error}\n".encode())

    # ---- GET

    def _get(self, path: str, parameters: dict[str, list[str]]) -> None:
        content = self.server.content
        if path == "/":
            self._page(parameters)
        elif path == "/lines.json":
            known = _json({"serving": self.server.serving} | content.known())
            self._send(HTTPStatus.OK, "application/json", known)
        elif path == "/events":
            self._events(self.headers.get("Last-Event-ID") or parameters.get("after", ["0"])[0])
        elif path == "/metrics" and content.exposition is not None:
            text = content.exposition(content.history.latest())
            self._send(HTTPStatus.OK, "text/plain; version=0.0.4", text.encode())
        else:
            raise RefusedError(404, f"there is nothing at {path[:60]}")

    def _page(self, parameters: dict[str, list[str]]) -> None:
        html, policy = page()
        headers = {"Content-Security-Policy": policy}
        token = parameters.get("token", [None])[0]
        if token is not None and self.server.guard.is_token(token):
            cookie = f"{self.server.guard.cookie}={token}"
            headers["Set-Cookie"] = f"{cookie}; HttpOnly; SameSite=Strict; Path=/"
        self._send(HTTPStatus.OK, "text/html", html, headers)

    def _events(self, last_id: str) -> None:
        serving, _, last = last_id.rpartition("-")
        if not last.isascii() or not last.isdigit() or len(last) > 18:
            raise RefusedError(400, f"Last-Event-ID must be a number, got {last_id[:60]!r}")
        self.close_connection = True  # no length: the response ends with the connection
        self.send_response(HTTPStatus.OK)
        for name, value in {**_HEADERS, "Content-Type": "text/event-stream"}.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(f"retry: {_RETRY_MS}\n\n".encode())
        is_ours = serving in ("", self.server.serving)
        self._send_lines(int(last) if is_ours else None)

    def _send_lines(self, last: int | None) -> None:
        """Send the lines after number `last` until the end; None makes the page start again."""
        is_over, history = self.server.is_over, self.server.content.history
        while not is_over.is_set():
            lines = None if last is None else history.after(last, _KEEP_ALIVE_S, is_over)
            if lines is None:
                self.wfile.write(b"event: reset\ndata: {}\n\n")
                return
            for number, line in lines:
                name = f"id: {self.server.serving}-{number}\nevent: line\ndata: "
                self.wfile.write(name.encode() + _json(line) + b"\n\n")
                last = number
            if not lines:
                self.wfile.write(b": nothing new\n\n")

    # ---- POST

    def _post(self, path: str, parameters: dict[str, list[str]]) -> None:
        given = self.headers.get
        if path != "/control":
            raise RefusedError(404, f"nothing can be changed at {path[:60]}")
        is_bearer = self.server.guard.is_token(
            (given("Authorization") or "").removeprefix("Bearer ")
        )
        if not is_bearer:  # with the header it is a program: a page of another site cannot send it
            self.server.guard.check_origin(given("Origin"), given("Host"), given("Sec-Fetch-Site"))
        if (given("Content-Type") or "").partition(";")[0].strip().lower() != "application/json":
            raise RefusedError(415, "the request must be application/json")
        length = given("Content-Length") or ""
        if not length.isascii() or not length.isdigit():
            raise RefusedError(411, "the request must have a Content-Length")
        if len(length) > 9 or int(length) > MOST_BYTES:
            raise RefusedError(413, f"the request may have at most {MOST_BYTES} bytes")
        control = self.server.content.control
        if control is None:
            raise RefusedError(409, self.server.content.no_control)
        try:
            settings = settings_of(self.rfile.read(int(length)))
            control.send(settings)
        except SlackwaterError as error:
            raise RefusedError(400, str(error)) from error
        answer = json.dumps({"asked": settings}).encode()
        self._send(HTTPStatus.ACCEPTED, "application/json", answer)

    def _send(
        self, status: int, kind: str, body: bytes, more: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        headers = _HEADERS | {"Content-Type": f"{kind}; charset=utf-8"} | dict(more or {})
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _json(data: dict[str, Any]) -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode()

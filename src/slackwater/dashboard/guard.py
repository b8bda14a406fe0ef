"""Check requests: they must come from a page of this server, by its name, and with the token.

A server on the loopback interface needs no token: it answers only to its own names, which keeps
out pages of other sites, also those whose name points here (DNS rebinding).

>>> guard = Guard("127.0.0.1", 8000, token=None)
>>> guard.check_host("localhost:8000")
>>> guard.check_host("example.org:8000")
Traceback (most recent call last):
slackwater.dashboard.guard.RefusedError: this server is not example.org:8000
"""

from __future__ import annotations

import ipaddress
import socket
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


class RefusedError(Exception):
    """A request was refused; with the HTTP status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Guard:
    """Checks requests to one server.

    Parameters
    ----------
    host, port
        Where it listens.
    token
        The token that a request must have; None for none.
    """

    def __init__(self, host: str, port: int, token: str | None) -> None:
        self._host = host.lower()
        self._port = port
        self._token = token
        self.cookie = f"slackwater_{port}"  # a browser shares cookies between ports

    def check_host(self, given: str | None) -> None:
        """Refuse a request for another host name."""
        name, port = split(given or "")
        if not self._is_ours(name) or port != self._port:
            raise RefusedError(421, f"this server is not {given or 'without a name'}")

    def check_origin(self, origin: str | None, host: str | None, site: str | None) -> None:
        """Refuse a request from a page of another site."""
        if origin != f"http://{host}" or site not in (None, "same-origin"):
            raise RefusedError(403, "only the page of this server may do that")

    def check_token(self, bearer: str | None, cookies: str | None, parameter: str | None) -> None:
        """Refuse a request without the token."""
        if self._token is None:
            return
        header = (bearer or "").removeprefix("Bearer ").strip()
        known = (given for given in (header, parameter or "", self._in(cookies)) if given)
        if not any(self.is_token(given) for given in known):
            raise RefusedError(401, "a token is needed: open the address that was printed")

    def is_token(self, given: str | None) -> bool:
        """Return whether this is the token, in constant time."""
        return self._token is not None and compare_digest(
            (given or "").encode(), self._token.encode()
        )

    def _in(self, cookies: str | None) -> str:
        try:
            jar = SimpleCookie(cookies or "")
        except CookieError:
            return ""
        return jar[self.cookie].value if self.cookie in jar else ""

    def _is_ours(self, name: str) -> bool:
        if is_loopback(self._host):
            return name in _LOOPBACK_NAMES or name == self._host
        # An address cannot be rebound, and a page under another name does not have the token.
        return _is_address(name) or name in (self._host, "localhost", socket.gethostname().lower())


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on this host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def split(host: str) -> tuple[str, int]:
    """Split a Host header into name and port.

    >>> split("localhost:8000"), split("[::1]:8000"), split("example.org")
    (('localhost', 8000), ('::1', 8000), ('example.org', 80))
    """
    name, colon, port = host.lower().rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        name, port = host.lower(), "80"
    return name.removeprefix("[").removesuffix("]"), int(port[:6])


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

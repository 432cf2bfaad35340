"""The token without which a page that other machines can reach shows nothing.

It is in the address that `mastery watch` prints. The browser exchanges it for a cookie, so that it
stays in no address bar, no history and no bookmark; programs send it in a header.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from email.message import Message
from urllib.parse import parse_qs, quote

from mastery.errors import MasteryError

REFUSED = (
    "This page needs a token. Open the address that mastery watch printed when it started: it "
    "ends in ?token=..."
)


class Token:
    """A token, and the cookie that stands for it in a browser.

    Args:
        text: The token; None makes a random one.

    Raises:
        MasteryError: The token is empty.
    """

    def __init__(self, text: str | None = None) -> None:
        if text is not None and not text.strip():
            raise MasteryError("the token is empty; give another, or none for a random one")
        self._text = secrets.token_urlsafe(24) if text is None else text.strip()
        # the same after a restart with the same token, so that open pages go on
        self._cookie = hashlib.sha256(f"mastery cookie {self._text}".encode()).hexdigest()

    @property
    def query(self) -> str:
        """The part of the address that carries the token."""
        return f"?token={quote(self._text, safe='')}"

    def in_query(self, query: str) -> bool | None:
        """Whether the query has the right token; None if it has none."""
        given = parse_qs(query, keep_blank_values=True).get("token")
        return None if given is None else _same(given[0], self._text)

    def in_headers(self, headers: Message, port: int) -> bool:
        """Whether `Authorization: token …` or the cookie is right."""
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "token":
            return _same(given.strip(), self._text)
        # by hand: an odd cookie of another server on this host would stop http.cookies
        pairs = (pair.strip().partition("=") for pair in headers.get("Cookie", "").split(";"))
        return any(name == _name(port) and _same(value, self._cookie) for name, _, value in pairs)

    def set_cookie(self, port: int) -> str:
        """The `Set-Cookie` header that admits this browser."""
        return f"{_name(port)}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"


def _name(port: int) -> str:
    """Browsers send a cookie to every port of a host, so each server has a name of its own."""
    return f"mastery-{port}"


def _same(given: str, known: str) -> bool:
    """Compare in constant time: how long it takes does not say how much is right."""
    return hmac.compare_digest(given.encode(errors="surrogateescape"), known.encode())

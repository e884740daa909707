"""Requests to Google: where they go, and how often they are repeated.

Only the addresses of `Endpoints` are ever asked; redirects are not followed. This
module knows no review and no key.

Sections: addresses - one request - requests that are repeated.
"""

from __future__ import annotations

import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPMessage
from typing import Any, NamedTuple

from reviewslib.dataset.moments import utc_text
from reviewslib.dataset.strict_json import NotJson, Object, decode
from reviewslib.importer.google_faults import has_no_quota, no_answer, odd_answer

# ---- Addresses ----


@dataclass(frozen=True)
class Endpoints:
    """Google's addresses; tests replace them by those of a fake."""

    # Nothing is sent to it: the owner's browser opens it.
    consent: str = "https://accounts.google.com/o/oauth2/v2/auth"
    token: str = "https://oauth2.googleapis.com/token"  # noqa: S105
    accounts: str = "https://mybusinessaccountmanagement.googleapis.com/v1"
    locations: str = "https://mybusinessbusinessinformation.googleapis.com/v1"
    reviews: str = "https://mybusiness.googleapis.com/v4"


# ---- One request ----

# A page of 50 reviews has some 100 KB; an answer without an end must not fill the
# memory.
MAX_RESPONSE_BYTES = 16 * 1024 * 1024
TIMEOUT_SECONDS = 30


class GoogleResponse(NamedTuple):
    """An answer of Google's."""

    status: int
    content: Any  # decoded JSON
    date: str  # the moment of Google's clock in UTC, empty without one

    @property
    def is_busy(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status == 429 or self.status >= 500

    @property
    def is_not_found(self) -> bool:
        """Whether Google says that what was asked for does not exist.

        An error page of another server on the way says nothing of the kind.
        """
        return self.status == 404 and self.error.get("status") == "NOT_FOUND"

    @property
    def error(self) -> Object:
        """The `error` object of a status that is none of success."""
        if isinstance(self.content, dict):
            error = self.content.get("error")
            if isinstance(error, dict):
                return error
        return {}


def _opener() -> urllib.request.OpenerDirector:
    """Without handlers of errors, and of redirects, which would carry the token away.

    HTTPS_PROXY and SSL_CERT_FILE are honoured.
    """
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.ProxyHandler())
    opener.add_handler(urllib.request.HTTPHandler())
    opener.add_handler(urllib.request.HTTPSHandler())
    return opener


def exchange(
    url: str, fields: Mapping[str, str], body: bytes | None = None
) -> GoogleResponse:
    """Send a request, a POST if it has a body. Raises GoogleFault."""
    request = urllib.request.Request(url, body, dict(fields))  # noqa: S310
    try:
        with _opener().open(request, timeout=TIMEOUT_SECONDS) as answer:
            content = answer.read(MAX_RESPONSE_BYTES + 1)
            return _response(answer.status, answer.headers, content)
    # A ValueError is about an address of a proxy, which may have a password.
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise no_answer(
            f"Google cannot be reached ({_words_of(reason)}); check the network of "
            "this machine, and HTTPS_PROXY if it needs a proxy."
        ) from None


def _words_of(reason: object) -> str:
    """What the system says of a failed connection, without an address of a proxy."""
    # The words of other errors may quote that address.
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return type(reason).__name__ if isinstance(reason, Exception) else "no network"


def _response(status: int, fields: HTTPMessage, content: bytes) -> GoogleResponse:
    if len(content) > MAX_RESPONSE_BYTES:
        raise odd_answer(f"it is larger than {MAX_RESPONSE_BYTES // 2**20} MiB")
    try:
        decoded = decode(content, lone_surrogates=True)
    except NotJson:
        # A server in trouble, or a redirect, often has HTML; its status says enough.
        if status < 300:
            raise odd_answer("it is not JSON") from None
        decoded = None
    return GoogleResponse(
        status=status, content=decoded, date=_moment_of(fields["Date"])
    )


def _moment_of(date: str | None) -> str:
    try:
        moment = parsedate_to_datetime(date or "")
        # Without a zone, -0000, it is UTC, too (RFC 5322, section 3.3).
        return utc_text(moment.replace(tzinfo=moment.tzinfo or UTC))
    except (ValueError, OverflowError):
        return ""


# ---- Requests that are repeated ----

MAX_PAUSES_SECONDS = 120
LONGEST_PAUSE_SECONDS = 32


@dataclass
class Pacing:
    """How long to wait before a request is repeated: at most two minutes in a run."""

    rest_seconds: float = MAX_PAUSES_SECONDS
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def wait(self, attempt: int) -> bool:
        """Pause before attempt `attempt`, from 1; false if the time is used up."""
        # Jitter: many servers that were refused at once must not come back at once.
        longest = min(LONGEST_PAUSE_SECONDS, 2.0**attempt)
        pause = longest * (0.5 + self.random() / 2)
        if pause > self.rest_seconds:
            return False
        self.rest_seconds -= pause
        self.sleep(pause)
        return True


def exchange_patiently(
    url: str, fields: Mapping[str, str], pacing: Pacing, body: bytes | None = None
) -> GoogleResponse:
    """Send a request until Google is not busy, or the time is used up.

    Raises GoogleFault.
    """
    attempt = 0
    while True:
        response = exchange(url, fields, body)
        # A project without any quota is not served later either.
        if not response.is_busy or has_no_quota(response.error):
            return response
        attempt += 1
        if not pacing.wait(attempt):
            return response

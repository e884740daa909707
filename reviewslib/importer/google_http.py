"""Requests to Google: what is asked, how often, and the sentence for each fault.

Only the addresses of `Endpoints` are ever asked; redirects are not followed. No message of
this module has a key, a token, a request's address or an answer's text, but for the
sentence that Google gives for an error. It knows no review.

Sections: addresses, faults, one request, requests that are repeated.
"""

from __future__ import annotations

import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPMessage
from typing import Any, NamedTuple

from reviewslib.dataset.moments import utc_text
from reviewslib.dataset.strict_json import NotJson, Object, decode
from reviewslib.importer.texts import clean_line
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_FAILURE, CommandFailed

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


# ---- Faults: one sentence each, with the way on ----


class GoogleFault(CommandFailed):
    """Google gave no usable answer, so nothing is written."""


def no_answer(reason: str) -> GoogleFault:
    """A fault that may be over at the next run."""
    return GoogleFault(reason, status=EXIT_FAILURE)


def to_be_settled(reason: str) -> GoogleFault:
    """A fault that stays until the owner does something."""
    return GoogleFault(reason, status=EXIT_BAD_DATA)


def odd_answer(what: str) -> GoogleFault:
    """An answer whose shape is not the documented one."""
    return no_answer(
        f"Google's answer has another shape than documented ({what}); "
        "if it stays so for a day, this program needs an update."
    )


# Google's sentences are short; what is longer would hide the rest of the output.
MAX_SENTENCE_CHARACTERS = 500


def _sentence_of(error: Object) -> str:
    message = error.get("message")
    sentence = clean_line(message) if isinstance(message, str) else ""
    return sentence[:MAX_SENTENCE_CHARACTERS]


def has_no_quota(error: Object) -> bool:
    """Whether the limit that was passed is 0: access is not approved yet."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, dict):
            metadata = detail.get("metadata")
            if isinstance(metadata, dict) and metadata.get("quota_limit_value") == "0":
                return True
    return False


NOT_APPROVED = (
    "Google allows this project no requests: access to the Business Profile API is not "
    "approved yet, or its quota is used up; docs/google.md has the form and how long an "
    "answer takes."
)


def fault_of(response: Response) -> GoogleFault:
    """The sentence for a status that ends the command."""
    error = response.error
    if response.status == 429:
        return to_be_settled(NOT_APPROVED)
    if response.status >= 500:
        return no_answer(
            f"Google answers {response.status} for two minutes; run the command later."
        )
    said = _sentence_of(error) or "it gives no reason"
    if response.status == 403:
        return to_be_settled(f"Google refuses access, and says: {said}")
    if response.status == 401:
        return to_be_settled(
            "Google does not accept the key: log in again with --google-login."
        )
    return no_answer(f"Google answers {response.status}, and says: {said}")


# ---- One request ----

# A page of 50 reviews has some 100 KB; an answer without an end must not fill the memory.
MAX_ANSWER_BYTES = 16 * 1024 * 1024
TIMEOUT_SECONDS = 30


class Response(NamedTuple):
    """An answer of Google's."""

    status: int
    content: Any  # decoded JSON
    date: str  # the moment of Google's clock in UTC, empty without one

    @property
    def error(self) -> Object:
        """The `error` object of a status that is none of success."""
        if isinstance(self.content, dict):
            error = self.content.get("error")
            if isinstance(error, dict):
                return error
        return {}


def _opener() -> urllib.request.OpenerDirector:
    """Without handlers of redirects, which would carry the token elsewhere, and of errors.

    HTTPS_PROXY and SSL_CERT_FILE are honoured.
    """
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.ProxyHandler())
    opener.add_handler(urllib.request.HTTPHandler())
    opener.add_handler(urllib.request.HTTPSHandler())
    return opener


def exchange(
    url: str, fields: Mapping[str, str], body: bytes | None = None
) -> Response:
    """Send a request, a POST if it has a body. Raises GoogleFault."""
    request = urllib.request.Request(url, body, dict(fields))  # noqa: S310
    try:
        with _opener().open(request, timeout=TIMEOUT_SECONDS) as answer:
            content = answer.read(MAX_ANSWER_BYTES + 1)
            return _response(answer.status, answer.headers, content)
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        kind = type(reason).__name__ if isinstance(reason, Exception) else "no network"
        raise no_answer(
            f"Google cannot be reached ({kind}); check the network of this machine, "
            "and HTTPS_PROXY if it needs a proxy."
        ) from None


def _response(status: int, fields: HTTPMessage, content: bytes) -> Response:
    if len(content) > MAX_ANSWER_BYTES:
        raise odd_answer(f"it is larger than {MAX_ANSWER_BYTES // 2**20} MiB")
    try:
        decoded = decode(content, lone_surrogates=True)
    except NotJson:
        # A server in trouble, or a redirect, often has HTML; its status says enough.
        if status < 300:
            raise odd_answer("it is not JSON") from None
        decoded = None
    return Response(status=status, content=decoded, date=_moment_of(fields["Date"]))


def _moment_of(date: str | None) -> str:
    try:
        return utc_text(parsedate_to_datetime(date or ""))
    except ValueError:
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
) -> Response:
    """Send a request until its status is none of 429 and 5xx. Raises GoogleFault."""
    attempt = 0
    while True:
        response = exchange(url, fields, body)
        is_busy = response.status == 429 or response.status >= 500
        if not is_busy or has_no_quota(response.error):
            return response
        attempt += 1
        if not pacing.wait(attempt):
            return response

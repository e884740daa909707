"""Errors of HTTP: the class that handlers raise, and the formats of the responses.

JSON has the member names of RFC 9457. This module knows no route and no data.

Sections: the error - errors of several routes - its formats.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any

from reviewslib.dataset.query import BadQuery, Issue, echo
from reviewslib.dataset.strict_json import encode
from reviewslib.messages import JSON_TYPE, TEXT_TYPE, Headers, Response, uncacheable

# ---- The error ----


@dataclass(eq=False)
class HttpError(Exception):
    """A request that gets an error response."""

    status: int
    detail: str
    headers: Headers = ()
    members: dict[str, Any] = field(default_factory=dict)  # more members of the object


# ---- Errors of several routes ----


def method_not_allowed(method: str, allowed: str) -> HttpError:
    """405 for a method that is not one of `allowed`, a list as in `Allow`."""
    return HttpError(
        status=405,
        detail=f"{echo(method)} is not allowed; allowed: {allowed}.",
        headers=(("Allow", allowed),),
    )


def bad_parameters(bad: BadQuery) -> HttpError:
    """400 for wrong parameters, all of them at once."""
    subject = f"{len(bad.issues)} parameters are"
    if len(bad.issues) == 1:
        subject = "One parameter is"
    return HttpError(
        status=400,
        detail=f"{subject} wrong. See issues.",
        members={"issues": [asdict(issue) for issue in bad.issues]},
    )


def bad_host(host: str) -> HttpError:
    """400 for a `Host` that is missing, repeated or no host (RFC 9112 section 3.2)."""
    detail = "The request has no Host header."
    if host:
        detail = "The Host header is repeated or not a host."
    issue = Issue(None, echo(host), detail)
    return HttpError(400, detail, members={"issues": [asdict(issue)]})


# ---- Its formats ----


def json_error(error: HttpError) -> Response:
    """An object with member names of RFC 9457; a 400 always has issues."""
    members = error.members
    if error.status == 400 and not members:
        members = {"issues": [asdict(Issue(None, "", error.detail))]}
    document = {
        "type": "about:blank",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.detail,
    }
    body = encode(document | members)
    return uncacheable(error.status, JSON_TYPE, body, error.headers)


def text_line(status: int, text: str, headers: Headers) -> Response:
    """A line of plain text, as a hub answers (WebSub section 5.1.2)."""
    return uncacheable(status, TEXT_TYPE, f"{text}\n".encode(), headers)

"""What is sent to a callback, and what comes back, as values.

Pure: nothing is sent here. This module must not know how rows change, or how a message
travels.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlencode

from reviewslib.links import topic_link_header
from reviewslib.websub.rows import NOTICE, HubSettings, Row, Topic


@dataclass(frozen=True, slots=True)
class CallbackRequest:
    """An HTTP request to make."""

    method: Literal["GET", "POST"]
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    # For the whole exchange, from the resolver to the last byte that is read.
    timeout_seconds: float
    read_body_bytes: int  # how much of the answer's body matters


@dataclass(frozen=True, slots=True)
class CallbackResponse:
    """The answer to a request. Without a status, `outcome` says why."""

    status: int | None
    # "HTTP 200", "connection refused": for the log and the operator, not for
    # subscribers.
    outcome: str
    body: bytes = b""  # only of a success, at most `read_body_bytes`
    retry_after: str = ""
    is_refused: bool = False  # the callback's machine refused the connection
    own_fault: bool = False  # this machine or its network failed

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_sign_of_life(self) -> bool:
        return self.status is not None or self.is_refused


def verification(
    request: Row, lease_seconds: int, challenge: str, settings: HubSettings
) -> CallbackRequest:
    """The GET that asks a callback to confirm a request (REC 5.3).

    The lease is told of an unsubscription, too (specification 4.9).
    """
    parameters = {
        "hub.mode": request.mode,
        "hub.topic": request.topic_url,
        "hub.challenge": challenge,
        "hub.lease_seconds": str(lease_seconds),
    }
    # One byte more than the challenge, so that an answer that only begins with it is
    # recognized.
    return question(request.callback, parameters, settings, len(challenge) + 1)


def denial_notice(notice: Row, settings: HubSettings) -> CallbackRequest:
    """The GET that tells a callback of a denial or a removal (REC 5.2)."""
    parameters = {
        "hub.mode": NOTICE,
        "hub.topic": notice.topic_url,
        "hub.reason": notice.outcome,
    }
    return question(notice.callback, parameters, settings, 0)


def question(
    callback: str,
    parameters: Mapping[str, str],
    settings: HubSettings,
    read_body_bytes: int,
) -> CallbackRequest:
    """A GET of a callback. Its own query stays exactly as it is (REC 5.1.1)."""
    query = urlencode(parameters, quote_via=quote)
    return CallbackRequest(
        method="GET",
        url=f"{callback}{query_separator(callback)}{query}",
        headers={},
        body=None,
        # What answers is a program that looks up what it has asked for. Its thread is
        # wanted for others.
        timeout_seconds=settings.timeout / 2,
        read_body_bytes=read_body_bytes,
    )


def query_separator(url: str) -> str:
    if url.endswith(("?", "&")):
        return ""
    return "&" if "?" in url else "?"


def notification(
    subscription: Row, topic: Topic, settings: HubSettings
) -> CallbackRequest:
    """The POST that delivers the content (REC 7), signed if there is a secret."""
    headers = {
        "Content-Type": topic.content_type,
        "Link": topic_link_header(settings.base_url, topic.path),
    }
    if subscription.secret is not None:
        signature = hmac.digest(subscription.secret, topic.body, "sha256").hex()
        headers["X-Hub-Signature"] = f"sha256={signature}"
    return CallbackRequest(
        method="POST",
        url=subscription.callback,
        headers=headers,
        body=topic.body,
        timeout_seconds=settings.timeout,
        # REC 7: the body of the answer does not matter.
        read_body_bytes=0,
    )

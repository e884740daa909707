"""The form of a subscriber (REC 5.1): from its bytes to a request, or to a refusal.

Everything here is pure; time is an argument. This module must not know what becomes of
a request.

Sections: answers - the request - fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qs

from reviewslib.websub.callback_urls import normalized_url, parse_callback
from reviewslib.websub.rows import (
    MAX_WAIT_SECONDS,
    REQUEST_MODES,
    HubSettings,
    Row,
    Topic,
)

FORM_TYPE = "application/x-www-form-urlencoded"
# A callback and a topic of 2 KB each, every character escaped, and a secret.
MAX_FORM_BYTES = 16 * 1024
# REC 5.1: "less than 200 bytes".
MAX_SECRET_BYTES = 199
# No lease that the operator may grant has as many digits.
MAX_LEASE_DIGITS = 11

T = TypeVar("T")
S = TypeVar("S")

# ---- Answers ----


class HubAnswer(NamedTuple):
    """The answer to a POST: one line of text/plain (REC 5.1.2).

    It may have header fields such as Retry-After.
    """

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()


class RequestRefused(Exception):
    """A request that gets an error status.

    The author of the subscriber reads the reason.
    """

    def __init__(
        self, status: int, reason: str, retry_after_seconds: int | None = None
    ):
        headers: tuple[tuple[str, str], ...] = ()
        if retry_after_seconds is not None:
            headers = (("Retry-After", str(retry_after_seconds)),)
        self.answer = HubAnswer(status, reason, headers)


# ---- The request ----


def read_request(
    content_type: str | None,
    body: bytes,
    settings: HubSettings,
    topics: Mapping[str, Topic],
    now: float,
) -> Row:
    """The request in a form POST.

    Its digest is that of the topic's present content, which a subscriber has read.
    Raises RequestRefused, which names everything that is wrong.
    """
    fields = FormFields(read_form(content_type, body))
    asked = read_asked(fields, settings)
    path = topic_path(asked.topic_url, settings.base_url)
    topic = topics.get(path)
    # Whoever subscribed to a topic that is gone may still unsubscribe.
    if topic is None and asked.mode != "unsubscribe":
        fields.add_unknown_topic([settings.base_url + path for path in topics])
    fields.raise_issues()
    digest = topic.digest if topic else ""
    return request_row(asked, path, digest, now)


class Asked(NamedTuple):
    """The values of the fields that mean something to the hub."""

    mode: str
    callback: Callback
    topic_url: str
    lease_seconds: int
    secret: bytes | None


def read_asked(fields: FormFields, settings: HubSettings) -> Asked:
    """The values of the fields; those with an issue have a substitute."""
    mode = fields.required("hub.mode", parse_mode, "")
    callback = fields.required(
        "hub.callback",
        partial(read_callback, allow_private=settings.allow_private),
        Callback("", ""),
    )
    topic_url = fields.required("hub.topic", str, "")
    lease_seconds = settings.lease_seconds
    secret = None
    # REC 5.1: a lease is ignored when unsubscribing; a secret has no use there.
    if mode != "unsubscribe":
        lease_seconds = fields.optional(
            "hub.lease_seconds", parse_lease_seconds, lease_seconds
        )
        secret = fields.optional("hub.secret", parse_secret, None)
    return Asked(
        mode=mode,
        callback=callback,
        topic_url=topic_url,
        # A lease that cannot be granted is no fault of the subscriber.
        lease_seconds=clamped(lease_seconds, settings.lease_min, settings.lease_max),
        secret=secret,
    )


def request_row(asked: Asked, path: str, digest: str, now: float) -> Row:
    """The row of a request that is due at once, and expires if it cannot be sent."""
    return Row(
        path=path,
        callback_key=normalized_url(asked.callback.url),
        callback=asked.callback.url,
        host=asked.callback.host,
        topic_url=asked.topic_url,
        mode=asked.mode,
        secret=asked.secret,
        lease_seconds=asked.lease_seconds,
        since=now,
        expires_at=now + MAX_WAIT_SECONDS,
        due_at=now,
        digest=digest,
    )


def topic_path(topic_url: str, base_url: str) -> str:
    """The path of a topic of this hub; "" for any other URL."""
    url = normalized_url(topic_url)
    base = normalized_url(base_url)
    return url.removeprefix(base) if url.startswith(base) else ""


def clamped(value: int, least: int, most: int) -> int:
    return min(max(value, least), most)


# ---- Fields ----


def read_form(content_type: str | None, body: bytes) -> dict[str, list[str]]:
    """The values of each field of a form in UTF-8. Raises RequestRefused."""
    if len(body) > MAX_FORM_BYTES:
        raise RequestRefused(413, f"the form is larger than {MAX_FORM_BYTES} bytes")
    media_type = (content_type or "").partition(";")[0]
    if media_type.strip().lower() != FORM_TYPE:
        raise RequestRefused(415, f"Content-Type must be {FORM_TYPE}")
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, errors="strict")
    except UnicodeError:
        raise RequestRefused(400, "the form is not UTF-8") from None


class Callback(NamedTuple):
    """A callback as it was sent, and its host in lower case."""

    url: str
    host: str


class FormFields:
    """The fields of a form, and everything that is wrong with them."""

    def __init__(self, form: Mapping[str, list[str]]):
        self._form = form
        self._issues: list[str] = []
        self._unknown_topic = ""

    def required(self, name: str, parse: Callable[[str], T], substitute: T) -> T:
        """The value of a field; the substitute if it is missing or has an issue."""
        if name not in self._form:
            self._issues.append(f"{name} is missing")
        return self.optional(name, parse, substitute)

    def optional(self, name: str, parse: Callable[[str], T], default: S) -> T | S:
        """The value of a field; the default if it is missing or has an issue."""
        texts = self._form.get(name, [])
        if len(texts) > 1:
            self._issues.append(f"{name} is given {len(texts)} times")
        if len(texts) != 1:
            return default
        try:
            return parse(texts[0])
        except ValueError as fault:
            self._issues.append(f"{name} {fault}")
            return default

    def add_unknown_topic(self, topic_urls: list[str]) -> None:
        """Say that the topic is none of these, if the form has a topic."""
        if len(self._form.get("hub.topic", [])) != 1:
            return
        self._unknown_topic = (
            "hub.topic is not a topic of this hub; its topics are "
            + ", ".join(topic_urls)
        )

    def raise_issues(self) -> None:
        """Raises RequestRefused if there is an issue; 404 if it is the topic alone."""
        if self._issues and self._unknown_topic:
            self._issues.append(self._unknown_topic)
        if self._issues:
            raise RequestRefused(400, "; ".join(self._issues))
        if self._unknown_topic:
            raise RequestRefused(404, self._unknown_topic)


def read_callback(url: str, *, allow_private: bool) -> Callback:
    return Callback(url, parse_callback(url, allow_private=allow_private))


def parse_mode(raw: str) -> str:
    if raw not in REQUEST_MODES:
        raise ValueError("must be subscribe or unsubscribe")
    return raw


def parse_lease_seconds(raw: str) -> int:
    """A positive decimal integer (REC 5.1)."""
    digits = raw.lstrip("0")
    if not (raw.isascii() and raw.isdecimal() and digits):
        raise ValueError("must be a positive whole number of seconds")
    # The time of int() grows with the square of the digits.
    return int(digits[:MAX_LEASE_DIGITS])


def parse_secret(raw: str) -> bytes:
    """The key of the signatures: the UTF-8 bytes of hub.secret."""
    secret = raw.encode("utf-8")
    if not 0 < len(secret) <= MAX_SECRET_BYTES:
        raise ValueError(f"must have 1 to {MAX_SECRET_BYTES} bytes")
    return secret

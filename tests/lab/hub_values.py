"""What tests of the hub send and expect: topics, forms, signatures. No hub, no socket."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import parse_qsl, urlencode, urlsplit

from reviewslib.websub.rows import Topic

BASE_URL = "https://reviews.example"
FEED = "/feed.xml"
JSON_FEED = "/api/feed.json"
FORM = "application/x-www-form-urlencoded"


def topic(path: str, media_type: str, text: str) -> Topic:
    body = text.encode()
    return Topic(path, media_type, body, hashlib.sha256(body).hexdigest())


def topics(text: str = "one", **more: str) -> dict[str, Topic]:
    """Both topics with this text; `feed` and `json` give one of them another."""
    return {
        FEED: topic(FEED, "application/atom+xml", more.get("feed", text)),
        JSON_FEED: topic(JSON_FEED, "application/json", more.get("json", text)),
    }


def form(
    mode: str = "subscribe",
    callback: str = "https://s.example/cb",
    path: str = FEED,
    **more: str,
) -> bytes:
    """The form of a request; `secret` and `lease_seconds` get the prefix `hub.`."""
    fields = {"hub.mode": mode, "hub.callback": callback, "hub.topic": BASE_URL + path}
    for name, value in more.items():
        fields[f"hub.{name}"] = value
    return urlencode(fields).encode()


def query(url: str) -> dict[str, str]:
    """The last value of each parameter."""
    return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))


def signed(secret: str, text: str) -> str:
    digest = hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()
    return f"sha256={digest}"

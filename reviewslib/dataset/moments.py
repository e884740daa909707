"""Moments as text (RFC 3339, section 5.6): the one form in which they are written."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(moment: datetime) -> str:
    """A moment, with a zone, as YYYY-MM-DDTHH:MM:SSZ."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def text_of_seconds(seconds: float) -> str:
    """Seconds since the epoch as `utc_text` writes them."""
    return utc_text(datetime.fromtimestamp(seconds, UTC))

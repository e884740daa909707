"""The cache of computed representations, which belongs to one snapshot.

This module must not know what a variant is.
"""

from __future__ import annotations

from typing import NamedTuple

from reviewslib.web.representations import Representation


class CacheKey(NamedTuple):
    """What a computed representation depends on, within a snapshot."""

    path: str
    # What else the route depends on, such as the query string.
    variant: str
    is_gzip: bool


class RepresentationCache:
    """A cache of computed representations, emptied before it would exceed its bound.

    The computing thread alone adds; any thread may read. The bound is small: with 8
    MiB, whose memory is seldom used again, unseen searches are a twentieth slower.
    """

    # Of headers and objects, beside the bodies.
    ENTRY_BYTES = 2048

    def __init__(self, max_bytes: int = 1024 * 1024):
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: dict[CacheKey, Representation] = {}

    def get(self, key: CacheKey) -> Representation | None:
        """The representation cached under `key`."""
        return self._entries.get(key)

    def add(self, key: CacheKey, representation: Representation) -> None:
        """Cache a representation under `key`, unless it alone exceeds the bound."""
        entry_bytes = self._size_of(key, representation)
        if entry_bytes > self._max_bytes:
            return
        if self._bytes + entry_bytes > self._max_bytes:
            # A new dictionary: who reads meanwhile reads the old one.
            self._entries = {}
            self._bytes = 0
        self._entries[key] = representation
        self._bytes += entry_bytes

    def _size_of(self, key: CacheKey, representation: Representation) -> int:
        size = self.ENTRY_BYTES + len(key.variant)
        for coding in (representation.identity, representation.gzip):
            # Slices of the data are held by the snapshot anyway.
            if coding and isinstance(coding.body, bytes):
                size += len(coding.body)
        return size

"""Whether silence is an outage of our own side.

One silent callback is away. Several that stay silent while nobody answers mean that
this machine, or what connects it, is cut off: then nobody may lose a subscription for
it.

This module must not know what was sent. It has no clock: moments are arguments, in
seconds of any clock that is never set back.
"""

from __future__ import annotations

import threading

# Fewer silent ones may be away by chance. One dead platform with many callbacks is no
# outage either, but then others answer.
OUTAGE_SUBSCRIPTIONS = 3


class Silences:
    """Since when subscriptions have been silent, by id. Thread-safe.

    A restart forgets it: the first silence after a start is one of the callback.
    """

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._lock = threading.Lock()

    def end(self) -> None:
        """Somebody has answered: our side works."""
        with self._lock:
            self._since.clear()

    def forget(self, id: int) -> None:
        """The subscription is gone."""
        with self._lock:
            self._since.pop(id, None)

    def outage_seconds(self, id: int, now: float) -> float | None:
        """Note that a subscription was silent. Returns how long, if it is an outage.

        It is one if this subscription has been silent before, and at least three are
        silent together.
        """
        with self._lock:
            was_silent = id in self._since
            since = self._since.setdefault(id, now)
            if was_silent and len(self._since) >= OUTAGE_SUBSCRIPTIONS:
                return now - since
        return None

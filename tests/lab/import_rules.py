"""The ten rules of imports as a plain definition: which reviews are stored, and how shown.

It uses the reviews that were written and the files that were imported. It uses no
digest, no file of the data directory and no code of the importer. Its sections: what
was written, what an import brings, what is stored.

Sections: what customers and the owner have written - what an import brings - what is
stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lab.export_lab import PLACE

# ---- What customers and the owner have written ----

PLACES = (PLACE, "22")
FACEBOOK = "facebook"
GUESTBOOK = "guestbook"
TABLES = (FACEBOOK, GUESTBOOK)

Key = tuple[str, int]  # location or source, and number


@dataclass(frozen=True)
class Review:
    """A version of a review; moments are UTC, that of a reply is empty without one."""

    author: str
    stars: int
    text: str
    created: str
    updated: str
    reply: str = ""
    replied: str = ""


Reviews = Mapping[Key, Review]

# ---- What an import brings ----


@dataclass(frozen=True)
class Brought:
    """The reviews in the files of a command."""

    reviews: Reviews = field(default_factory=dict)
    time: str = ""  # T of the export
    covers: frozenset[str] = frozenset()  # scopes of which it has every review


# ---- What is stored ----


@dataclass
class Stored:
    """A review as it is stored, and when exports had it."""

    shown: Review
    seen: str  # time of the newest export that had it
    text_of: tuple[str, str]  # times of the text's update and of the export that had it
    location: str  # empty after a loss, until an export has it


Shown = tuple[str, int, str, str]  # author, stars, text and reply


@dataclass
class Rules:
    """What is stored after the commands so far."""

    stored: dict[Key, Stored] = field(default_factory=dict)
    # Of `stored`, those that are published.
    there: set[Key] = field(default_factory=set)
    # Times of the newest complete exports, by scope.
    covered: dict[str, str] = field(default_factory=dict)
    erased: set[Key] = field(default_factory=set)
    erased_authors: set[str] = field(default_factory=set)
    redacted: dict[Key, str] = field(default_factory=dict)

    def take(self, brought: Brought, *, may_remove: bool) -> None:
        """Import; `may_remove` is whether the owner has allowed removals."""
        before = {*self.there}
        for key in brought.reviews.keys() - self.erased:
            self._take_review(key, brought)
        for scope in brought.covers:
            self.covered[scope] = max(brought.time, self.covered.get(scope, ""))
        self._erase_authors()
        # After a loss, a review of Google may be of any location: scope "".
        for scope in (*PLACES, *TABLES, ""):
            self._remove(scope, before, may_remove=may_remove)

    def _take_review(self, key: Key, brought: Brought) -> None:
        if key in self.there:
            self._revise(key, brought)
            return
        new = brought.reviews[key]
        seen = brought.time
        if key in self.stored:
            # It was removed, and returns.
            seen = max(seen, self.stored[key].seen)
        self.stored[key] = Stored(new, seen, _version(key, brought), location=key[0])
        self.there.add(key)

    def _revise(self, key: Key, brought: Brought) -> None:
        """The newest export has the name and the reply, the newest update the words."""
        stored = self.stored[key]
        stored.location = key[0]
        shown = stored.shown
        new = brought.reviews[key]
        if brought.time >= stored.seen:
            stored.seen = brought.time
            reply = {"reply": new.reply, "replied": new.replied}
            shown = replace(shown, author=new.author, **reply)
        if _version(key, brought) >= stored.text_of:
            stored.text_of = _version(key, brought)
            shown = replace(shown, stars=new.stars, text=new.text)
        stored.shown = shown

    def _erase_authors(self) -> None:
        self.erase(
            key
            for key, stored in self.stored.items()
            if stored.shown.author in self.erased_authors
        )

    def _remove(self, scope: str, before: set[Key], *, may_remove: bool) -> None:
        """Remove what no export has had since the newest complete one, but not much."""
        covered = min(self.covered.get(place, "") for place in _places_of(scope))
        ours = {key for key in self.there if self.stored[key].location == scope}
        gone = {key for key in ours if self.stored[key].seen < covered}
        # What only this import has brought is not taken, however much it is.
        self.there -= gone - before
        ours &= self.there
        gone &= self.there
        is_much = len(gone) > 3 and len(gone) * 10 > len(ours)
        if may_remove or not (is_much or gone == ours):
            self.there -= gone

    def erase(self, keys: Iterable[Key]) -> None:
        keys = {*keys}
        self.erased |= keys
        self.there -= keys

    def edit(self, key: Key, text: str) -> None:
        """The owner changes a text in reviews.json."""
        stored = self.stored[key]
        stored.shown = replace(stored.shown, text=text)

    def lose(self) -> None:
        """Lose the state: a review existed when it was written, and nothing is covered."""
        self.stored = {key: _made_anew(key, self.stored[key]) for key in self.there}
        self.covered = {}

    def listed(self) -> dict[Key, Shown]:
        """The reviews as they are published."""
        shown = dict[Key, Shown]()
        for key in self.there:
            review = self.stored[key].shown
            text = review.text
            if key in self.redacted:
                text = text.replace(self.redacted[key], "[…]")
            shown[key] = (review.author, review.stars, text, review.reply)
        return shown


def _version(key: Key, brought: Brought) -> tuple[str, str]:
    """When a text was updated, which tables do not say, and the time of its export."""
    if key[0] in PLACES:
        return brought.reviews[key].updated, brought.time
    return "", brought.time


def _places_of(scope: str) -> Iterable[str]:
    return [scope] if scope else PLACES


def _made_anew(key: Key, stored: Stored) -> Stored:
    """A review of which reviews.json alone is known."""
    seen = max(stored.shown.created, stored.shown.replied)
    location = ""
    if key[0] in TABLES:
        # A table has days: an export had it at the end of that day at the latest.
        seen = f"{seen[:10]}T23:59:59Z"
        location = key[0]
    return Stored(stored.shown, seen, text_of=("", seen), location=location)

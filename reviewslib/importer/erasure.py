"""Erasure and redaction: reviews and words are kept away for good, whatever later exports contain.

Lines of suppressed.txt are digests: the file works without the state, and has no names. Lines of
redacted.txt have the id of a review and words. This module is pure.

Sections: Digests - Suppression - Redaction
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from reviewslib.dataset.contract import BadData, Fault, quoted
from reviewslib.dataset.strict_json import Json, Object
from reviewslib.dataset.text import fold, loosen
from reviewslib.importer import recognition
from reviewslib.importer.exports import NeedsDecision, listed, refused
from reviewslib.importer.state import Entry

SUPPRESSED_FILE, REDACTED_FILE = "suppressed.txt", "redacted.txt"
Reviews = Mapping[str, Object]  # by id
Entries = Mapping[str, Entry]  # by id; reviews of the owner's own have none

# ---- Digests: how a review is recognized ----


def exact_digests(entry: Entry) -> list[str]:
    """The digests that no other review has."""
    return [recognition.digest(*key) for key in recognition.exact_keys(entry)]


def _day_digests(kinds: Iterable[str], author: str, entry: Entry, days: Iterable[int]) -> list[str]:
    """The digests of short name and day, for every offset in `days`; none for a name that many share."""
    if recognition.is_shared(author):
        return []
    name, dates = recognition.short_name(fold(author)), [recognition.shifted(entry.created, n) for n in days]
    return [recognition.digest(kind, name, day) for kind in kinds for day in dates]


def _matching_digests(entry: Entry, review: Object | None) -> list[str]:
    """All lines that keep this review away; `review` is None if it is not stored."""
    kinds = ["day", "day in tables"] if entry.row else ["day"]
    of_day = _day_digests(kinds, review["author"], entry, (0, *recognition.NEAR)) if review else []
    return [*exact_digests(entry), f"author {entry.author}", *of_day]


# ---- Suppression ----

SUPPRESSED_LINE = re.compile("(?:author )?[0-9a-f]{64}")


def read_suppressed(text: str) -> list[str]:
    """The lines of suppressed.txt without comments. Raises BadData."""
    numbered = enumerate(map(str.strip, text.splitlines()), 1)
    lines = {number: line for number, line in numbered if line and not line.startswith("#")}
    reason = "expected 64 lower-case hexadecimal digits, alone or after “author ”"
    wrong = [number for number, line in lines.items() if not SUPPRESSED_LINE.fullmatch(line)]
    if wrong:
        raise BadData([Fault(f"{SUPPRESSED_FILE} line {number}", (), reason) for number in wrong])
    return list(dict.fromkeys(lines.values()))


def suppressed_ids(reviews: Reviews, entries: Entries, lines: Iterable[str]) -> tuple[set[str], list[str]]:
    """The ids of the reviews that the lines keep away, and the lines with those to add.

    The added lines are the exact digests of these reviews, which may keep further reviews away.
    """
    ids, all_lines = set[str](), dict.fromkeys(lines)
    candidates = {
        id: entries.get(id) or recognition.entry_of(reviews[id]) for id in sorted({*entries, *reviews})
    }
    digests = {id: _matching_digests(entry, reviews.get(id)) for id, entry in candidates.items() if all_lines}
    while matching := {id for id in digests.keys() - ids if not all_lines.keys().isdisjoint(digests[id])}:
        ids |= matching
        all_lines |= dict.fromkeys(line for id in sorted(matching) for line in exact_digests(candidates[id]))
    return ids, [*all_lines]


def find_review(reviews: Reviews, id_or_url: str) -> str:
    """The id of the review that has this id, or whose page has this address. Raises NeedsDecision."""
    of_page = unquote(re.split("[?#]", id_or_url.rpartition("/reviews/")[2])[0])
    for id in (id_or_url, of_page):
        if id in reviews:
            return id
    lines = [f"No review has the id {quoted(id_or_url)}.", "Give its id, or the address of its page."]
    raise NeedsDecision(lines)


def forget_review(reviews: Reviews, entries: Entries, id_or_url: str) -> tuple[list[str], list[str]]:
    """The lines that keep a review away, and remarks. Raises NeedsDecision."""
    id = find_review(reviews, id_or_url)
    entry, author = entries.get(id) or recognition.entry_of(reviews[id]), reviews[id]["author"]
    kind = "day" if entry.row else "day in tables"  # at Google, other reviews can have the name and the day
    lines = exact_digests(entry) + _day_digests([kind], author, entry, [0])
    remark = f"many customers are called {author}: tables are not searched for this review by name and day"
    return lines, [remark] if recognition.is_shared(author) else []


def forget_author(reviews: Reviews, entries: Entries, name: str) -> tuple[list[str], list[str]]:
    """The lines that keep away all present and future reviews of an author, and remarks.

    Raises NeedsDecision if the name can mean several authors.
    """
    if recognition.is_shared(name):
        advice = "Remove each review by its own id: --forget ID."
        raise NeedsDecision([f"{name} is not the name of a single author.", advice])
    whole_name = recognition.author_digest(name)
    ids = defaultdict[str, list[str]](list)  # by digest of the author
    for id, review in reviews.items():
        author = (entries.get(id) or recognition.entry_of(review)).author
        if author == whole_name or loosen(review["author"]) == loosen(name):
            ids[author].append(id)
    spelled = [author for author in ids if any(reviews[id]["author"] == name for id in ids[author])]
    authors = spelled if len(spelled) == 1 else [*ids]
    if len(authors) > 1:
        names = [f"{reviews[id]['author']} ({id})" for author in authors for id in ids[author]]
        lines = [f"Several authors are called {name}, or have similar names:", *listed(names)]
        advice = "Give the name exactly as one of them has it, or each review by its id: --forget ID."
        raise NeedsDecision([*lines, advice])
    lines = [f"author {author}" for author in authors or [whole_name]]
    for id in (id for author in authors for id in ids[author]):
        lines += forget_review(reviews, entries, id)[0]
    return lines, [] if ids else [f"no review of {name} is stored; future ones are kept away"]


# ---- Redaction ----


class Redaction(NamedTuple):
    """A line of redacted.txt."""

    id: str
    words: str
    digests: Sequence[str]  # of the review, in case it gets another id

    @property
    def line(self) -> str:
        """The line, with tabs between its parts."""
        return "\t".join(filter(None, [self.id, self.words, " ".join(self.digests)]))


def read_redacted(text: str) -> list[Redaction]:
    """The lines of redacted.txt: id, words and digests, with tabs between. Raises BadData."""
    redactions = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not (line.startswith("#") and "\t" not in line):
            id, words, digests = (*line.split("\t", 2), "", "")[:3]
            if not id or not words.strip():
                raise refused(f"{REDACTED_FILE} line {number}", "expected an id, a tab and words")
            redactions.append(Redaction(id, words.strip(), digests.split()))
    return redactions


def redaction_of(reviews: Reviews, entries: Entries, id_or_url: str, words: str) -> Redaction:
    """The line that redacts words in a review. Raises NeedsDecision if the review does not have them."""
    id, words = find_review(reviews, id_or_url), " ".join(words.split())
    if not words or without_words(reviews[id], words) == reviews[id]:
        fault = f"The review {id} does not have the words {quoted(words)}."
        raise NeedsDecision([fault, "Give them as the review has them."])
    return Redaction(id, words, exact_digests(entries[id]) if id in entries else [])


def redacted(
    reviews: Reviews, entries: Entries, redactions: Sequence[Redaction]
) -> dict[str, dict[str, Json]]:
    """The reviews with words to redact, without these words; digests find a review that has another id."""
    words_by_mark = defaultdict[str, list[str]](list)
    for redaction in redactions:
        for mark in (redaction.id, *redaction.digests):
            words_by_mark[mark].append(redaction.words)
    found = dict[str, dict[str, Json]]()
    for id, review in reviews.items() if redactions else ():
        for mark in (id, *(exact_digests(entries[id]) if id in entries else ())):
            for words in words_by_mark.get(mark, ()):
                found[id] = without_words(found.get(id, review), words)
    return found


def without_words(review: Object, words: str) -> dict[str, Json]:
    """A review with […] in place of `words`, in any case and with any white space between them."""
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)
    redacted = {**review, "text": review.get("text") and pattern.sub("[…]", review["text"])}
    if reply := review.get("owner_reply"):
        redacted["owner_reply"] = reply | {"text": pattern.sub("[…]", reply["text"])}
    return redacted

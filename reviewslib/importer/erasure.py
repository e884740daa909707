"""Erasure and redaction: reviews and words are kept away for good.

Whatever later exports contain, the lines of two files hold. Those of suppressed.txt are
digests: the file works without the state, and has no names. Those of redacted.txt have
the id of a review, words, and digests in case the review gets another id, with tabs
between. This module is pure.

Sections: suppression - redaction.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import reduce
from urllib.parse import unquote

from reviewslib.dataset.contract import quoted
from reviewslib.dataset.strict_json import Json, Object
from reviewslib.dataset.text import fold, loosen
from reviewslib.importer import recognition
from reviewslib.importer.names import is_shared, short_name
from reviewslib.importer.questions import NeedsDecision, listed, refused
from reviewslib.importer.state import Entry

ReviewsById = Mapping[str, Object]
Entries = Mapping[str, Entry]  # by id, also of reviews of the owner's own

SUPPRESSED_FILE = "suppressed.txt"
REDACTED_FILE = "redacted.txt"
DIGESTS = "64 lower-case hexadecimal digits, alone or after “author ”"
LINES = {  # by file: the form of its lines, as a pattern and in words
    SUPPRESSED_FILE: (re.compile("(?:author )?[0-9a-f]{64}"), DIGESTS),
    REDACTED_FILE: (
        re.compile(r"[^\t]+\t[^\t]+(?:\t[0-9a-f ]+)?"),
        "an id, a tab and words",
    ),
}


def read_lines(file: str, text: str) -> list[str]:
    """The distinct lines of suppressed.txt or redacted.txt, without comments.

    Raises BadData.
    """
    form, words = LINES[file]
    lines = dict[str, None]()
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if form.fullmatch(line):
            lines[line] = None
        elif line and not line.startswith("#"):
            raise refused(f"{file} line {number}", f"expected {words}")
    return [*lines]


def find_review(reviews: ReviewsById, id_or_url: str) -> str:
    """The id of the review that has this id, or whose page has this address.

    Raises NeedsDecision.
    """
    of_page = unquote(re.split("[?#]", id_or_url.rpartition("/reviews/")[2])[0])
    for id in (id_or_url, of_page):
        if id in reviews:
            return id
    lines = [
        f"No review has the id {quoted(id_or_url)}.",
        "Give its id, or the address of its page.",
    ]
    raise NeedsDecision(lines)


# ---- Suppression ----


def exact_digests(entry: Entry) -> list[str]:
    """The digests that no other review has."""
    keys = recognition.exact_keys(entry) + recognition.person_keys(entry)
    return [recognition.digest(*key) for key in keys]


def _day_digests(
    entry: Entry, author: str, kinds: Iterable[str], days: Iterable[int]
) -> list[str]:
    """The digests of short name and day, for every offset in `days`.

    None for a name that many share.
    """
    if is_shared(author):
        return []
    name = short_name(fold(author))
    dates = [recognition.shifted(entry.created, n) for n in days]
    digests = list[str]()
    for kind in kinds:
        digests += [recognition.digest(kind, name, day) for day in dates]
    return digests


def _matching_digests(entry: Entry, review: Object | None) -> list[str]:
    """All lines that keep this review away; `review` is None if it is not stored."""
    days = (0, *recognition.NEAR)
    digests = [*exact_digests(entry), f"author {entry.author}"]
    digests += [recognition.digest(*key) for key in recognition.near_person_keys(entry)]
    if review:
        kinds = ["day", "day in tables"] if entry.row else ["day"]
        digests += _day_digests(entry, review["author"], kinds, days)
    return digests


def suppressed_ids(
    reviews: ReviewsById, entries: Entries, lines: Iterable[str]
) -> tuple[set[str], list[str]]:
    """The ids of the reviews that the lines keep away, and the lines with those to add.

    The added lines are the exact digests of these reviews, which may keep further
    reviews away.
    """
    all_lines = dict.fromkeys(lines)
    if not all_lines:
        return set(), []
    digests = dict[str, list[str]]()
    for id in sorted(entries):
        digests[id] = _matching_digests(entries[id], reviews.get(id))
    ids = set[str]()
    while True:
        matching = [
            id
            for id in digests
            if id not in ids and not all_lines.keys().isdisjoint(digests[id])
        ]
        if not matching:
            return ids, [*all_lines]
        ids.update(matching)
        for id in matching:
            all_lines |= dict.fromkeys(exact_digests(entries[id]))


def forget_review(
    reviews: ReviewsById, entries: Entries, id_or_url: str
) -> tuple[list[str], list[str]]:
    """The lines that keep a review away, and remarks. Raises NeedsDecision."""
    id = find_review(reviews, id_or_url)
    entry = entries[id]
    author = reviews[id]["author"]
    # At Google, other reviews can have the name and the day.
    kind = "day" if entry.row else "day in tables"
    lines = exact_digests(entry) + _day_digests(entry, author, [kind], [0])
    if not is_shared(author):
        return lines, []
    remark = (
        f"many customers are called {author}: "
        "tables are not searched for this review by name and day"
    )
    return lines, [remark]


def forget_author(
    reviews: ReviewsById, entries: Entries, name: str, *, anyway: bool = False
) -> tuple[list[str], list[str]]:
    """The lines that keep away all reviews of an author, future ones too, and remarks.

    Raises NeedsDecision if the name can mean several authors, or unless `anyway` none.
    """
    if is_shared(name):
        advice = "Remove each review by its own id: --forget ID."
        raise NeedsDecision([f"{name} is not the name of a single author.", advice])
    ids = _ids_by_author(reviews, entries, name)
    if not ids and not anyway:
        raise _question_of_nobody(reviews, name)
    authors = _spelled_exactly(reviews, ids, name) or [*ids]
    if len(authors) > 1:
        raise _question_of_authors(reviews, ids, authors, name)
    whole_name = recognition.author_digest(name)
    lines = [f"author {author}" for author in authors or [whole_name]]
    for author in authors:
        for id in ids[author]:
            lines += forget_review(reviews, entries, id)[0]
    if ids:
        return lines, []
    return lines, [f"no review of {name} is stored; future ones are kept away"]


def _ids_by_author(
    reviews: ReviewsById, entries: Entries, name: str
) -> dict[str, list[str]]:
    """By digest of the author: the ids of reviews whose author may be meant."""
    digest = recognition.author_digest(name)
    loose_name = loosen(name)
    ids = defaultdict[str, list[str]](list)
    for id, review in reviews.items():
        author = entries[id].author
        if author == digest or loosen(review["author"]) == loose_name:
            ids[author].append(id)
    return ids


def _spelled_exactly(
    reviews: ReviewsById, ids: Mapping[str, Sequence[str]], name: str
) -> list[str]:
    """The one author whose name is spelled so, if there is one."""
    spelled = list[str]()
    for author, ids_of_author in ids.items():
        if any(reviews[id]["author"] == name for id in ids_of_author):
            spelled.append(author)
    if len(spelled) > 1:
        return []
    return spelled


# As difflib measures it, so that “Camile Roux” finds “Camille Roux”.
NEAREST = 0.6
# More names would hide the one that was meant.
MAX_NEAREST = 5


def _question_of_nobody(reviews: ReviewsById, name: str) -> NeedsDecision:
    """The names that are nearest to one that nobody has.

    A slip of the pen would keep nobody away, and the owner would believe it done.
    """
    names = {loosen(review["author"]): review["author"] for review in reviews.values()}
    nearest = get_close_matches(loosen(name), names, n=MAX_NEAREST, cutoff=NEAREST)
    lines = [f"No review is by {quoted(name)}."]
    if nearest:
        lines.append("The nearest names are:")
        lines += listed(names[loose_name] for loose_name in nearest)
    lines.append("To keep away future reviews of this name, say --anyway as well.")
    return NeedsDecision(lines)


def _question_of_authors(
    reviews: ReviewsById,
    ids: Mapping[str, Sequence[str]],
    authors: Iterable[str],
    name: str,
) -> NeedsDecision:
    names = list[str]()
    for author in authors:
        names += [f"{reviews[id]['author']} ({id})" for id in ids[author]]
    lines = [
        f"Several authors are called {name}, or have similar names:",
        *listed(names),
        "Give the name exactly as one of them has it, "
        "or each review by its id: --forget ID.",
    ]
    return NeedsDecision(lines)


# ---- Redaction ----


def redaction_of(
    reviews: ReviewsById, entries: Entries, id_or_url: str, words: str
) -> str:
    """The line that redacts words in a review.

    Raises NeedsDecision if the review does not have them.
    """
    id = find_review(reviews, id_or_url)
    words = " ".join(words.split())
    if not words or without_words(reviews[id], words) == reviews[id]:
        fault = f"The review {id} does not have the words {quoted(words)}."
        raise NeedsDecision([fault, "Give them as the review has them."])
    return "\t".join([id, words, " ".join(exact_digests(entries[id]))])


def redacted(
    reviews: ReviewsById, entries: Entries, lines: Sequence[str]
) -> dict[str, dict[str, Json]]:
    """The reviews with words to redact, without these words."""
    words_by_mark = defaultdict[str, list[str]](list)
    for line in lines:
        id, words, *digests = line.split("\t")
        for mark in (id, *" ".join(digests).split()):
            words_by_mark[mark].append(words)
    found = dict[str, dict[str, Json]]()
    if not lines:
        return found
    for id, review in reviews.items():
        redactions = list[str]()
        for mark in (id, *exact_digests(entries[id])):
            redactions += words_by_mark.get(mark, ())
        if redactions:
            found[id] = reduce(without_words, redactions, {**review})
    return found


def without_words(review: Object, words: str) -> dict[str, Json]:
    """A review with […] in place of `words`.

    They may be in any case, with any white space between them.
    """
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)
    redacted = {**review}
    text = review.get("text")
    if text:
        redacted["text"] = pattern.sub("[…]", text)
    reply = review.get("owner_reply")
    if reply:
        redacted["owner_reply"] = reply | {"text": pattern.sub("[…]", reply["text"])}
    return redacted

"""Erasure and redaction: reviews and words are kept away for good, whatever later exports contain.

Lines of suppressed.txt are digests: the file works without the state, and has no names. Lines of
redacted.txt have the id of a review and words. This module is pure.

Sections: Digests - Suppression - Redaction
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from reviewslib.dataset.contract import BadData, Fault, quoted
from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.text import fold, loosen
from reviewslib.importer.cells import FORMATS
from reviewslib.importer.exports import NeedsDecision, listed
from reviewslib.importer.identity import author_digest, days_near, digest, entry_of, short_name
from reviewslib.importer.state import Entry, Redaction

SUPPRESSED_FILE, REDACTED_FILE = "suppressed.txt", "redacted.txt"
Reviews = Mapping[str, Object]  # by id
Entries = Mapping[str, Entry]  # by id; reviews of the owner's own have none

# ---- Digests: how a review is recognized ----


def exact_digests(entry: Entry) -> list[str]:
    """The digests that no other review has: of its ids and its moment, or of its row if it has no id."""
    digests = [digest("id", entry.source, native_id) for native_id in entry.native.values()]
    if entry.source == "google" and entry.created.endswith("Z"):
        digests.append(digest("moment", entry.source, entry.location, entry.created))
        digests.append(digest("moment and author", entry.source, entry.created, entry.author))
    if entry.is_row and not entry.native:
        digests.append(digest("row", entry.row, entry.text))
    return digests


def is_shared(author: str) -> bool:
    """Whether many customers have this name, such as “A Google user”."""
    return fold(author) in FORMATS["shared_names"]


def lasting_digests(entry: Entry, author: str) -> list[str]:
    """The exact digests, and the digest of short name and day, which recognizes rows of tables."""
    if is_shared(author):
        return exact_digests(entry)
    kind = "day" if entry.is_row else "day in tables"
    return [*exact_digests(entry), digest(kind, short_name(fold(author)), entry.created[:10])]


def _matching_digests(entry: Entry, author: str) -> list[str]:
    """All lines that keep this review away; `author` is empty if the review is not stored."""
    digests = [*exact_digests(entry), f"author {entry.author}"]
    if author and not is_shared(author):
        kinds, name = ["day", "day in tables"] if entry.is_row else ["day"], short_name(fold(author))
        digests += [digest(kind, name, day) for kind in kinds for day in days_near(entry.created)]
    return digests


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
    """The ids of the reviews that the lines keep away, and lines to add.

    The added lines are the exact digests of these reviews, which may keep further reviews away.
    """
    ids, added, all_lines = set[str](), list[str](), set(lines)
    if not all_lines:
        return ids, added
    waiting = dict[str, tuple[Entry, list[str]]]()
    for id in sorted(entries.keys() | reviews.keys()):
        entry = entries.get(id) or entry_of(reviews[id])
        author = reviews[id]["author"] if id in reviews else ""
        waiting[id] = entry, _matching_digests(entry, author)
    while matching := [id for id, (_, digests) in waiting.items() if not all_lines.isdisjoint(digests)]:
        for id in matching:
            entry, _ = waiting.pop(id)
            added += [line for line in exact_digests(entry) if line not in all_lines]
            all_lines |= {*added}
            ids.add(id)
    return ids, added


def possible_ids(id_or_url: str) -> list[str]:
    """The ids that `id_or_url` can mean: itself, or the id in the address of a page."""
    path = id_or_url.partition("/reviews/")[2]
    forms = (id_or_url, path, re.split("[?#]", path)[0])
    return [*forms, *map(unquote, forms)]


def find_review(reviews: Reviews, id_or_url: str) -> str:
    """The id of the review that has this id, or whose page has this address. Raises NeedsDecision."""
    for id in possible_ids(id_or_url):
        if id in reviews:
            return id
    lines = [f"No review has the id {quoted(id_or_url)}.", "Give its id, or the address of its page."]
    raise NeedsDecision(lines)


def forget_review(
    reviews: Reviews, entries: Entries, suppressed: Collection[str], id_or_url: str
) -> tuple[list[str], list[str]]:
    """The lines that keep a review away, and remarks. Raises NeedsDecision."""
    ids = possible_ids(id_or_url)
    if reviews.keys().isdisjoint(ids) and any(digest("forgotten", id) in suppressed for id in ids):
        return [], [f"the review {id_or_url} was removed for good before"]
    id = find_review(reviews, id_or_url)
    author = reviews[id]["author"]
    remark = f"many customers are called {author}: tables are not searched for this review by name and day"
    lines = [*lasting_digests(entries.get(id) or entry_of(reviews[id]), author), digest("forgotten", id)]
    return lines, [remark] if is_shared(author) else []


def forget_author(reviews: Reviews, entries: Entries, name: str) -> tuple[list[str], list[str]]:
    """The lines that keep away all present and future reviews of an author, and remarks.

    Raises NeedsDecision if the name can mean several authors.
    """
    if is_shared(name):
        advice = "Remove each review by its own id: --forget ID."
        raise NeedsDecision([f"{name} is not the name of a single author.", advice])
    ids, whole_name = defaultdict[str, list[str]](list), author_digest(name)  # ids by digest of the author
    for id, review in reviews.items():
        author = (entries.get(id) or entry_of(review)).author
        if author == whole_name or loosen(review["author"]) == loosen(name):
            ids[author].append(id)
    spelled = {author for author in ids if any(reviews[id]["author"] == name for id in ids[author])}
    meant = spelled if len(spelled) == 1 else {*ids}
    if len(meant) > 1:
        names = [f"{reviews[id]['author']} ({id})" for author in ids for id in ids[author]]
        lines = [f"Several authors are called {name}, or have similar names:", *listed(names)]
        advice = "Give the name exactly as one of them has it, or each review by its id: --forget ID."
        raise NeedsDecision([*lines, advice])
    lines = [f"author {author}" for author in meant or [whole_name]]
    for id in (id for author in meant for id in ids[author]):
        lines += lasting_digests(entries.get(id) or entry_of(reviews[id]), reviews[id]["author"])
    return lines, [] if ids else [f"no review of {name} is stored; future ones are kept away"]


# ---- Redaction ----


def read_redacted(text: str) -> list[Redaction]:
    """The lines of redacted.txt: id, words and digests, with tabs between. Raises BadData."""
    redactions = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not (line.startswith("#") and "\t" not in line):
            id, _, rest = line.partition("\t")
            words, _, digests = rest.partition("\t")
            if not id or not words.strip():
                reason = "expected an id, a tab and words"
                raise BadData([Fault(f"{REDACTED_FILE} line {number}", (), reason)])
            redactions.append(Redaction(id, words.strip(), digests.split()))
    return redactions


def redaction_of(reviews: Reviews, entries: Entries, id_or_url: str, words: str) -> Redaction:
    """The line that redacts words in a review. Raises NeedsDecision if the review does not have them."""
    id, words = find_review(reviews, id_or_url), " ".join(words.split())
    review = reviews[id]
    texts = [review.get("text") or "", (review.get("owner_reply") or {}).get("text") or ""]
    if not words or all(redacted(text, words) == text for text in texts):
        fault = f"The review {id} does not have the words {quoted(words)}."
        raise NeedsDecision([fault, "Give them as the review has them."])
    return Redaction(id, words, exact_digests(entries[id]) if id in entries else [])


def words_to_redact(redactions: Sequence[Redaction], entries: Entries) -> Iterator[tuple[str, str]]:
    """Pairs of id and words; a review whose id has changed is recognized by its digests."""
    words_by_digest = defaultdict[str, list[str]](list)
    for redaction in redactions:
        yield redaction.id, redaction.words
        for line in redaction.digests:
            words_by_digest[line].append(redaction.words)
    for id, entry in entries.items() if words_by_digest else ():
        for line in exact_digests(entry):
            yield from ((id, words) for words in words_by_digest.get(line, ()))


def redacted(text: str, words: str) -> str:
    """`text` with […] in place of `words`, in any case and with any white space between them."""
    return re.sub(r"\s+".join(map(re.escape, words.split())), "[…]", text, flags=re.IGNORECASE)

"""Prompts for a language model, and the parsing of its answers.

A prompt carries the schema of its answer, and the answer is validated against it.
Review texts go into prompts as JSON data. Instructions, schemas and limits are data
of the package (`prompts.json`). This module is pure: it knows neither HTTP nor files.

Sections: requests and answers - annotations - the vocabulary - the summary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from importlib import resources
from itertools import chain
from typing import NamedTuple

from jsonschema import Draft202012Validator

from reviewslib.dataset.contract import Schema
from reviewslib.dataset.figures import ReviewObjects
from reviewslib.dataset.mentions import has_words, text_digest
from reviewslib.dataset.strict_json import Json, NotJson, Object, decode, encode
from reviewslib.dataset.text import folded_words, words_in
from reviewslib.dataset.vocabulary import (
    PROPOSED,
    PROPOSED_KEY,
    SENTIMENTS,
    entry_keys,
    vocabulary_of,
)

PROMPTS = decode((resources.files(__package__) / "prompts.json").read_bytes())

# ---- Requests and answers ----

# Request and answer share a context, often of 4,096 tokens, and servers cut a longer
# request without a word. 6,000 characters are some 1,600 tokens.
MAX_CHARACTERS = 6_000
MAX_ANSWER_TOKENS = 2_400
# Of a response in a message: one line on a terminal.
EXCERPT_BYTES = 200


class BadAnswer(ValueError):
    """An unusable answer; the text gives the reason."""


def _id_of(review: Object) -> str:
    id: str = review["id"]
    return id


class Prompt(NamedTuple):
    """A task for the model over a batch of reviews, which are numbered from 1."""

    name: str  # as in PROMPTS
    # Converts a valid answer; raises BadAnswer.
    parse: Callable[[ReviewObjects, Json], Json]
    schema: Schema  # of the answer
    vocabulary: Sequence[str] = ()  # lines that follow the instructions
    entries: Sequence[str] = ()  # the `entry_keys` of the vocabulary
    # Reviews for which it is the same are in the same request.
    group: Callable[[Object], str] = _id_of
    least_requests: int = 1  # if there are so many groups

    def request(
        self, reviews: ReviewObjects, model: str, limit_key: str = "max_tokens"
    ) -> dict[str, Json]:
        """The body of the request; it contains only the text of each review."""
        texts = [
            {"n": number, "text": review["text"]}
            for number, review in enumerate(reviews, 1)
        ]
        task = PROMPTS[self.name]
        tokens = task["max_tokens"] + task["max_tokens_per_review"] * len(reviews)
        schema = {"name": self.name, "strict": True, "schema": self.schema}
        return {
            "model": model,
            "messages": [
                {"role": "system", "content": self._instructions()},
                {"role": "user", "content": encode(texts).decode()},
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
            "stream": False,
            limit_key: tokens,
        }

    def _instructions(self) -> str:
        """What the model is told, a line each."""
        task = PROMPTS[self.name]
        lines = [
            *PROMPTS["every prompt"],
            *task["instructions"],
            *self.vocabulary,
        ]
        return "\n".join(lines)

    def batches(self, reviews: ReviewObjects, model: str) -> list[ReviewObjects]:
        """Split reviews into batches that fit, of whole groups.

        A review that is too long for any batch is a batch of its own. Of a group that
        is, the last reviews are left out.
        """
        batches: list[ReviewObjects] = []
        batch: list[Object] = []
        for group in self._groups(reviews):
            fitting = self._beginning_that_fits(group, model)
            if batch and not self._fits([*batch, *fitting], model):
                batches.append(batch)
                batch = []
            batch = [*batch, *fitting]
        if batch:
            batches.append(batch)
        if 0 < len(batches) < self.least_requests:
            return self.halves(batch) or batches
        return batches

    def halves(self, batch: ReviewObjects) -> list[ReviewObjects]:
        """Both halves of a batch, of whole groups; none if it is a single group."""
        groups = self._groups(batch)
        middle = len(groups) // 2
        if not middle:
            return []
        halves = (groups[:middle], groups[middle:])
        return [list(chain.from_iterable(half)) for half in halves]

    def _groups(self, reviews: ReviewObjects) -> list[ReviewObjects]:
        """The groups in the order of their first reviews."""
        groups: dict[str, list[Object]] = {}
        for review in reviews:
            groups.setdefault(self.group(review), []).append(review)
        return list(groups.values())

    def _beginning_that_fits(self, group: ReviewObjects, model: str) -> ReviewObjects:
        while len(group) > 1 and not self._fits(group, model):
            group = group[:-1]
        return group

    def _fits(self, reviews: ReviewObjects, model: str) -> bool:
        request = self.request(reviews, model)
        if request["max_tokens"] > MAX_ANSWER_TOKENS:
            return False
        return characters(request) <= MAX_CHARACTERS

    def answer(self, reviews: ReviewObjects, response: bytes) -> Json:
        """Parse the body of a response with status 200. Raises BadAnswer."""
        answer = _content(response)
        for violation in Draft202012Validator(self.schema).iter_errors(answer):
            raise BadAnswer(f"the answer violates its schema at {violation.json_path}")
        return self.parse(reviews, answer)


def _content(response: bytes) -> Json:
    """The answer in the body of a chat completion. Raises BadAnswer."""
    try:
        choice = decode(response)["choices"][0]
        message = choice["message"]
        reason = choice.get("finish_reason")
        if reason == "length":
            raise BadAnswer("the answer was cut off")
        if reason == "content_filter" or message.get("refusal"):
            raise BadAnswer("the model refused to answer")
        return decode(str(message["content"]).encode())
    except NotJson as error:
        reason = error.faults[0][1]
        raise BadAnswer(f"the answer cannot be read: {reason}") from None
    except (LookupError, TypeError, AttributeError):
        raise BadAnswer(
            f"the response is not a chat completion: {excerpt(response)}"
        ) from None


def characters(request: Json) -> int:
    """The length of a request body."""
    return len(encode(request).decode())


def excerpt(response: bytes) -> str:
    """The beginning of a response body, on one line."""
    words = response[:EXCERPT_BYTES].decode(errors="replace").split()
    return " ".join(words) or "(no message)"


# ---- Annotations: what each review mentions ----


def annotation_prompt(editorial: Object) -> Prompt:
    """Asks which entries of the vocabulary each review mentions.

    Kinds without entries are left out of the question. The parsed answer has the
    lists of an annotation by review id.
    """
    lines = list[str]()
    for kind, entries in vocabulary_of(editorial).items():
        if entries:
            lines.append(f"\n{kind}:")
            lines.extend(map(_line_of, entries))
    return Prompt(
        name="annotations",
        parse=_annotations,
        schema=_annotation_schema(editorial),
        vocabulary=lines,
        entries=entry_keys(editorial),
    )


def _annotation_schema(editorial: Object) -> Schema:
    """The schema of an answer: ids of entries alone, only of kinds that have some."""
    schema: Schema = deepcopy(PROMPTS["annotations"]["schema"])
    review = schema["properties"]["reviews"]["items"]
    sentiment = review["properties"]["aspects"]["items"]["properties"]["sentiment"]
    sentiment["enum"] = list(SENTIMENTS)
    for kind, entries in vocabulary_of(editorial).items():
        if entries:
            _schema_of_ids(review, kind)["enum"] = [entry["id"] for entry in entries]
        else:
            del review["properties"][kind]
            review["required"].remove(kind)
    return schema


def _schema_of_ids(review: Schema, kind: str) -> Schema:
    """The part of a review's schema that says which ids a kind may have."""
    item: Schema = review["properties"][kind]["items"]
    if kind == "aspects":
        # The only kind whose items are judged: objects instead of ids.
        return item["properties"]["id"]  # type: ignore[no-any-return]
    return item


def _line_of(entry: Object) -> str:
    """An entry of the vocabulary as the model reads it."""
    names = [entry["label"], *(entry.get("aliases") or ())]
    return f"- {entry['id']}: {', '.join(names)}"


# Of a phrase; eight words were asked for. What is longer is no phrase to show.
MAX_PHRASE_CHARACTERS = 200


def _annotations(reviews: ReviewObjects, answer: Object) -> dict[str, Json]:
    """The lists of each annotation by review id, bounded by the vocabulary."""
    by_number = sorted(answer["reviews"], key=lambda lists: lists["n"])
    if [lists["n"] for lists in by_number] != [*range(1, len(reviews) + 1)]:
        raise BadAnswer("the answer omits or repeats reviews")
    annotations: dict[str, Json] = {}
    for review, lists in zip(reviews, by_number, strict=True):
        annotations[review["id"]] = {
            kind: _different(kind, items)
            for kind, items in lists.items()
            if kind != "n"
        }
    return annotations


def _different(kind: str, items: Sequence[Json]) -> list[Json]:
    """A list of an annotation without repetitions: an aspect once with a sentiment."""
    if kind != "aspects":
        return list(dict.fromkeys(items))
    mentions: dict[tuple[str, str], Json] = {}
    for mention in items:
        judgement = mention["id"], mention["sentiment"]
        mentions.setdefault(judgement, _with_short_phrase(mention))
    return list(mentions.values())


def _with_short_phrase(mention: Object) -> Object:
    if len(mention["phrase"] or "") > MAX_PHRASE_CHARACTERS:
        return {**mention, "phrase": None}
    return mention


# ---- The vocabulary: keys of an EditorialFile, which the owner may change ----

# Enough to meet every subject that recurs, in some twenty requests.
MAX_READ_REVIEWS = 200
# More aspects or topics than these nobody reads on a page, nor does a small model
# keep them apart. People and services are only proposed, so they may be many.
MAX_PROPOSED_ENTRIES = {"aspects": 10, "topics": 10, "technicians": 30, "services": 30}
# Whether a person works there, and whether a service is sold, the owner knows better.
ONLY_PROPOSED_KINDS = ("technicians", "services")
# One or two words were asked for; what is longer is a sentence, not a label.
MAX_LABEL_CHARACTERS = 60
# A label enters by itself if so many answers have it. Reviews of one author are in one
# request, so that the words of one customer alone never become a name of an aspect.
MIN_ANSWERS = 2


def _author_of(review: Object) -> str:
    return folded_words(review["author"])


VOCABULARY = Prompt(
    name="vocabulary",
    parse=lambda _, answer: answer,
    schema=PROMPTS["vocabulary"]["schema"],
    group=_author_of,
    least_requests=MIN_ANSWERS,
)


# By id: the label as each answer that has it spells it, at its first place.
Spellings = Mapping[str, Sequence[str]]


def spread(reviews: ReviewObjects) -> list[Object]:
    """Some of the reviews with words, in an order that follows neither dates nor stars.

    The order is that of digests: the same reviews give the same requests.
    """
    worded = filter(has_words, reviews)
    return sorted(worded, key=text_digest)[:MAX_READ_REVIEWS]


def proposed_vocabulary(answers: Sequence[Object]) -> dict[str, Json]:
    """Entries for the most frequent labels in answers to VOCABULARY.

    Under `proposed_…` stand the labels of one answer alone, and those of
    ONLY_PROPOSED_KINDS. Nothing if there are no aspects.
    """
    labels = {kind: _labels_by_id(answers, kind) for kind in MAX_PROPOSED_ENTRIES}
    if not labels["aspects"]:
        return {}
    proposals: dict[str, Json] = {}
    for kind in ("aspects", "topics"):
        proposals |= _by_agreement(kind, labels[kind])
    entities = {kind: _entries(kind, labels[kind]) for kind in ONLY_PROPOSED_KINDS}
    if any(entities.values()):
        proposals[f"{PROPOSED}entities"] = entities
    return proposals


def _by_agreement(kind: str, labels: Spellings) -> dict[str, Json]:
    """The entries of a kind by the key for them; a key without entries is absent."""
    shared = {id: said for id, said in labels.items() if len(said) >= MIN_ANSWERS}
    single = {id: said for id, said in labels.items() if id not in shared}
    by_key = {kind: shared, PROPOSED + kind: single}
    return {key: _entries(kind, each) for key, each in by_key.items() if each}


def _labels_by_id(answers: Sequence[Object], kind: str) -> Spellings:
    labels: dict[str, list[str]] = {}
    for answer in answers:
        said: dict[str, str] = {}
        for label in answer[kind]:
            spaced = " ".join(label.split())
            id = "-".join(words_in(folded_words(spaced)))
            if id and len(spaced) <= MAX_LABEL_CHARACTERS:
                said.setdefault(id, spaced)
        for id, spelling in said.items():
            labels.setdefault(id, []).append(spelling)
    return labels


def _entries(kind: str, labels: Spellings) -> list[dict[str, Json]]:
    """Entries that wait for a look of the owner, those of most answers first."""
    ranked = sorted(labels.items(), key=lambda item: -len(item[1]))
    return [
        {"id": id, "label": _spelling(spellings), PROPOSED_KEY: True}
        for id, spellings in ranked[: MAX_PROPOSED_ENTRIES[kind]]
    ]


def _spelling(spellings: Sequence[str]) -> str:
    """The spelling that most answers have; of equals the shortest.

    They have the same words, so what one answer adds can only be signs around them.
    """
    return min(spellings, key=lambda text: (-spellings.count(text), len(text), text))


# ---- The summary: proposals for an EditorialFile, of which none is used unseen ----

# As many as the instructions ask for.
MAX_PROPOSED_QUESTIONS = 8


def _proposed_summary(reviews: ReviewObjects, answer: Object) -> dict[str, Json]:
    """What an answer to SUMMARY proposes, without that which rests on no review."""
    rests_on = _known_ids(reviews, answer["review_ids"])
    questions = [
        {**entry, "review_ids": _known_ids(reviews, entry["review_ids"])}
        for entry in answer["faq"]
    ]
    supported = [entry for entry in questions if all(entry.values())]
    proposals = {
        "summary": answer["summary"].strip() if rests_on else None,
        "summary_review_ids": rests_on,
        "pull_quote": _verbatim(answer["pull_quote"].strip(), reviews),
        "faq": supported[:MAX_PROPOSED_QUESTIONS],
    }
    return {PROPOSED + key: proposal for key, proposal in proposals.items() if proposal}


def _known_ids(reviews: ReviewObjects, numbers: Sequence[int]) -> list[str]:
    """The ids of reviews that an answer names by number, each once."""
    named = dict.fromkeys(numbers)
    return [
        reviews[number - 1]["id"] for number in named if 1 <= number <= len(reviews)
    ]


def _verbatim(quote: str, reviews: ReviewObjects) -> str | None:
    """A quotation, if one of the reviews has it letter by letter."""
    if any(quote in review["text"] for review in reviews):
        return quote
    return None


SUMMARY = Prompt(
    name="summary", parse=_proposed_summary, schema=PROMPTS["summary"]["schema"]
)

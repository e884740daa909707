"""Prompts for a language model, and the parsing of its answers.

A prompt carries the schema of its answer, and the answer is validated against that schema. Review texts go
into prompts as JSON data. Instructions, schemas and limits are data of the package (`prompts.json`). This
module is pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from importlib import resources
from typing import NamedTuple

from jsonschema import Draft202012Validator

from reviewslib.dataset.contract import Schema
from reviewslib.dataset.insights import (
    PROPOSED,
    SENTIMENTS,
    entry_keys,
    text_digest,
    vocabulary_of,
)
from reviewslib.dataset.strict_json import Json, NotJson, Object, decode, encode
from reviewslib.dataset.text import folded_words

Reviews = Sequence[Object]
PROMPTS = decode((resources.files(__package__) / "prompts.json").read_bytes())

# ---- Requests and answers ----

# Request and answer share a context, often of 4,096 tokens; servers silently cut a longer request.
MAX_CHARACTERS = 6_000
MAX_ANSWER_TOKENS = 2_400


class BadAnswer(ValueError):
    """An unusable answer; the text gives the reason."""


class Prompt(NamedTuple):
    """A task for the model over a batch of reviews, which are numbered from 1."""

    name: str  # as in PROMPTS
    parse: Callable[[Reviews, Json], Json]  # converts a valid answer; raises BadAnswer
    schema: Schema  # of the answer
    vocabulary: Sequence[str] = ()  # lines that follow the instructions
    entries: Sequence[str] = ()  # the `entry_keys` of the vocabulary

    def request(
        self, reviews: Reviews, model: str, limit_key: str = "max_tokens"
    ) -> dict[str, Json]:
        """The body of the request; it contains only the text of each review."""
        task = PROMPTS[self.name]
        lines = [*PROMPTS["every prompt"], *task["instructions"], *self.vocabulary]
        texts = [
            {"n": n, "text": review["text"]} for n, review in enumerate(reviews, 1)
        ]
        contents = {"system": "\n".join(lines), "user": encode(texts).decode()}
        schema = {"name": self.name, "strict": True, "schema": self.schema}
        return {
            "model": model,
            "messages": [
                {"role": role, "content": content} for role, content in contents.items()
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
            "stream": False,
            limit_key: task["max_tokens"]
            + task["max_tokens_per_review"] * len(reviews),
        }

    def batches(self, reviews: Reviews, model: str) -> Iterator[Reviews]:
        """Split reviews into batches that fit; a review that is too long is a batch of its own."""
        start = 0
        for end in range(1, len(reviews) + 1):
            longer = self.request(reviews[start : end + 1], model)
            too_long = (
                characters(longer) > MAX_CHARACTERS
                or longer["max_tokens"] > MAX_ANSWER_TOKENS
            )
            if too_long or end == len(reviews):
                yield reviews[start:end]
                start = end

    def answer(self, reviews: Reviews, response: bytes) -> Json:
        """Parse the body of a response with status 200. Raises BadAnswer."""
        try:
            choice = decode(response)["choices"][0]
            message = choice["message"]
            reason = choice.get("finish_reason")
            if reason == "length":
                raise BadAnswer("the answer was cut off")
            if reason == "content_filter" or message.get("refusal"):
                raise BadAnswer("the model refused to answer")
            answer = decode(str(message["content"]).encode())
        except NotJson as error:
            raise BadAnswer(
                f"the answer cannot be read: {error.faults[0][1]}"
            ) from None
        except (LookupError, TypeError, AttributeError):
            raise BadAnswer(
                f"the response is not a chat completion: {excerpt(response)}"
            ) from None
        for violation in Draft202012Validator(self.schema).iter_errors(answer):
            raise BadAnswer(f"the answer violates its schema at {violation.json_path}")
        return self.parse(reviews, answer)


def characters(request: Json) -> int:
    """The length of a request body."""
    return len(encode(request).decode())


def excerpt(response: bytes) -> str:
    """The beginning of a response body, on one line."""
    return " ".join(response[:200].decode(errors="replace").split()) or "(no message)"


# ---- Annotations: what each review mentions ----


def annotation_prompt(editorial: Object) -> Prompt:
    """Asks which entries of the vocabulary each review mentions; kinds without entries are omitted.

    The parsed answer has the lists of an annotation by review id.
    """
    schema = deepcopy(PROMPTS["annotations"]["schema"])
    lines = list[str]()
    review = schema["properties"]["reviews"]["items"]
    review["properties"]["aspects"]["items"]["properties"]["sentiment"]["enum"] = list(
        SENTIMENTS
    )
    for kind, entries in vocabulary_of(editorial).items():
        if entries:
            item = review["properties"][kind]["items"]
            ids = item["properties"]["id"] if kind == "aspects" else item
            ids["enum"] = [entry["id"] for entry in entries]
            names = (
                ", ".join([entry["label"], *(entry.get("aliases") or ())])
                for entry in entries
            )
            lines += [f"\n{kind}:", *map("- {}: {}".format, ids["enum"], names)]
        else:
            del review["properties"][kind]
            review["required"].remove(kind)
    return Prompt("annotations", _annotations, schema, lines, entry_keys(editorial))


def _annotations(reviews: Reviews, answer: Object) -> dict[str, Json]:
    """The lists of each annotation by review id."""
    lists = sorted(answer["reviews"], key=lambda lists: lists["n"])
    if [each.pop("n") for each in lists] != [*range(1, len(reviews) + 1)]:
        raise BadAnswer("the answer omits or repeats reviews")
    return {review["id"]: each for review, each in zip(reviews, lists, strict=True)}


# ---- Proposals: keys of an EditorialFile for the owner to accept ----

MAX_READ = 200  # reviews
MAX_ENTRIES = {"aspects": 10, "topics": 10, "technicians": 30, "services": 30}
LONGEST_LABEL = 60  # characters
VOCABULARY = Prompt(
    "vocabulary", lambda _, answer: answer, PROMPTS["vocabulary"]["schema"]
)


def spread(reviews: Reviews) -> list[Object]:
    """Some of the reviews with words, in an order that follows neither dates nor stars."""
    worded = (review for review in reviews if (review["text"] or "").strip())
    return sorted(worded, key=text_digest)[:MAX_READ]


def proposed_vocabulary(answers: Sequence[Object]) -> dict[str, Json]:
    """Entries for the most frequent labels in answers to VOCABULARY; none if there are no aspects.

    A label has the spelling of its first occurrence.
    """
    entries = dict[str, list[dict[str, str]]]()
    for kind, most in MAX_ENTRIES.items():
        spaced = (
            " ".join(label.split()) for answer in answers for label in answer[kind]
        )
        labels = [label for label in spaced if 0 < len(label) <= LONGEST_LABEL]
        spellings = {folded_words(label): label for label in reversed(labels)}
        frequent = Counter(map(folded_words, labels)).most_common(most)
        entries[kind] = [
            {"id": name.replace(" ", "-"), "label": spellings[name]}
            for name, _ in frequent
        ]
    people = {
        kind: entries.pop(kind) for kind in ("technicians", "services")
    }  # count only once accepted
    proposals = entries | (
        {f"{PROPOSED}entities": people} if any(people.values()) else {}
    )
    return proposals if entries["aspects"] else {}


MAX_QUESTIONS = 8


def _proposed_summary(reviews: Reviews, answer: Object) -> dict[str, Json]:
    """What an answer to SUMMARY proposes, without that which rests on no review."""
    names = {n: review["id"] for n, review in enumerate(reviews, 1)}
    for part in (answer, *answer["faq"]):
        part["review_ids"] = [
            names[n] for n in dict.fromkeys(part["review_ids"]) if n in names
        ]
    quote = answer["pull_quote"].strip()
    rests_on = answer["review_ids"]
    proposals = {
        "summary": answer["summary"].strip() if rests_on else "",
        "summary_review_ids": rests_on,
        "pull_quote": quote
        if any(quote in review["text"] for review in reviews)
        else "",
        "faq": [entry for entry in answer["faq"] if all(entry.values())][
            :MAX_QUESTIONS
        ],
    }
    return {PROPOSED + key: proposal for key, proposal in proposals.items() if proposal}


SUMMARY = Prompt("summary", _proposed_summary, PROMPTS["summary"]["schema"])

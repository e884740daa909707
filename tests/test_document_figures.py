"""Numbers in the sentences of the documents are those of the program.

A number that is not here is of the outside world, or stands in an example that a test
runs; tables have tests of their own in `test_documents`.
"""

import re
import tomllib

import pytest
from lab.services import ROOT

import hub
from reviewslib import files, messages
from reviewslib.annotator import client, command, prompts
from reviewslib.dataset import figures, query, reading, reviews, subjects, text
from reviewslib.dataset.contract import resolve
from reviewslib.export import crawl
from reviewslib.importer import exports, google_listing, ledger
from reviewslib.process import logs
from reviewslib.process.settings import Settings
from reviewslib.web import (
    crawlers,
    home_page,
    list_page,
    program_files,
    reload,
    representations,
)
from reviewslib.websub import forms, order, outages, rows, transitions

SETTINGS = Settings()
KIB = 1024
MIB = 1024 * KIB
MB = 10**6
HOUR_SECONDS = 3600
DAY_SECONDS = 24 * HOUR_SECONDS
WORDS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve"),
)
# Of a request that annotates: tokens of an answer, and for each review.
TOKENS = prompts.PROMPTS["annotations"]["max_tokens"]
TOKENS_PER_REVIEW = prompts.PROMPTS["annotations"]["max_tokens_per_review"]
MOST_REVIEWS = (prompts.MAX_ANSWER_TOKENS - TOKENS) // TOKENS_PER_REVIEW
(EMBEDDED,) = [
    resolve(contract, parameter)["schema"]
    for contract in [program_files.load_program_files().contract.document]
    for parameter in contract["paths"]["/embed"]["get"]["parameters"]
    if resolve(contract, parameter)["name"] == "limit"
]

SENTENCES = {
    "README.md": [
        f"the {reviews.NEWEST_REVIEWS} newest reviews, as JSON Feed",
    ],
    "docs/api.md": [
        f"`people`, the {WORDS[subjects.MAX_PEOPLE]} whom most matches mention",
        f"endings may differ in {WORDS[text.LONGEST_ENDING]} letters",
        f"more than {query.MAX_PARAMETERS} different parameters",
        f"have the {reviews.NEWEST_REVIEWS} newest reviews",
        f"the beginnings of the {WORDS[home_page.LLMS_REVIEWS]} newest reviews",
        f"lists all reviews, {list_page.PAGE_SIZE} a page",
        f"finds its first {WORDS[text.MAX_WORDS]} words in any order",
        f"the {crawlers.MAX_SITEMAP_REVIEWS:,} newest reviews",
        f"more than {representations.COMPRESSED_FROM_BYTES // KIB} KB are compressed",
        f"computed ones up to {representations.COMPRESSED_TO_BYTES // MIB} MiB",
        f"the {reviews.NEWEST_REVIEWS} newest matches",
    ],
    "docs/websub.md": [
        f"within {SETTINGS.hub_timeout / 2:g} seconds (half of `--hub-timeout`)",
        f"at most {forms.MAX_SECRET_BYTES} bytes",
        f"{SETTINGS.hub_lease_seconds // DAY_SECONDS} days by default",
        f"an hour and {SETTINGS.hub_lease_max // DAY_SECONDS} days on request",
        f"any 2xx within {SETTINGS.hub_timeout:g} seconds",
        f"After {WORDS[transitions.MAX_FAILURES]} failures in a row",
        f"after {WORDS[transitions.MAX_FAILURES]} failed deliveries in a row",
        f"those below {WORDS[int(order.SLOW_SECONDS)]} seconds",
        f"There are {SETTINGS.hub_max_subscriptions:,} subscriptions",
        f"more than {hub.MAX_WAITING_ROWS:,} requests and notices",
        f"if {WORDS[outages.OUTAGE_SUBSCRIPTIONS]} or more subscriptions give no sign",
        f"more than {SETTINGS.hub_workers} callbacks of a platform",
        f"{SETTINGS.hub_timeout:g} seconds for each {SETTINGS.hub_workers}",
        f"some {SETTINGS.hub_workers / (SETTINGS.hub_timeout / 2):.0f} forms a second",
        f"needs more than {SETTINGS.hub_timeout / 2:g} seconds to answer a challenge",
    ],
    "docs/files.md": [
        f"at most {files.LARGEST_FILE_BYTES // MIB} MiB and "
        f"{WORDS[reading.MAX_CONTAINERS // 10**6]} million objects and arrays",
        f"at most {reading.MAX_REVIEWS:,} reviews",
        f"JSON of a review at most {reviews.LARGEST_REVIEW_BYTES // KIB} KiB",
        f"after {WORDS[reload.ABSENT_POLLS]} more polls",
        f"last {figures.PERIOD_DAYS} days beside the {figures.PERIOD_DAYS} before",
        f"fewer than {WORDS[figures.MIN_PERIOD_REVIEWS]} reviews in either",
        f"at least {WORDS[figures.MIN_TREND_REVIEWS]} reviews",
        f"changes by at least {figures.MIN_CHANGE:g}",
    ],
    "docs/settings.md": [
        f"at most {logs.MAX_RECORDS:,} messages wait",
    ],
    "docs/insights.md": [
        f"reads at most {prompts.MAX_READ_REVIEWS} reviews",
        f"at most {prompts.MAX_CHARACTERS:,} characters",
        f"at most {TOKENS_PER_REVIEW} tokens for each review, plus {TOKENS}",
        f"at most {WORDS[MOST_REVIEWS]} reviews",
        f"After {WORDS[client.FAILURES_IN_A_ROW]} such reviews in a row",
    ],
    "docs/your-reviews.md": [
        f"more than {WORDS[ledger.FEW_REMOVED]} and more than a tenth",
        f"at least {WORDS[exports.MIN_FAILED]} of the rows",
    ],
    "docs/google.md": [
        f"at most {google_listing.MAX_ASKED_REVIEWS} in a run",
    ],
    "docs/without-a-server.md": [
        f"Above {crawl.MAX_SITE_BYTES // MB} MB nothing is written",
    ],
    "reviewslib/web/templates/common.txt": [
        f"web pages, {list_page.PAGE_SIZE} a page",
        f"The {reviews.NEWEST_REVIEWS} newest reviews as a JSON Feed",
        f"The {reviews.NEWEST_REVIEWS} newest reviews as an Atom feed",
    ],
    "reviewslib/openapi.json": [
        f"The {reviews.NEWEST_REVIEWS} newest reviews that pass every filter",
        f"The {reviews.NEWEST_REVIEWS} newest reviews as a JSON Feed 1.1",
        f"The {reviews.NEWEST_REVIEWS} newest reviews as an Atom feed (RFC 4287)",
        f"One message of at most {messages.LARGEST_BODY_BYTES // KIB} KiB",
        f"page 1 has the newest {list_page.PAGE_SIZE} reviews",
    ],
    "docs/your-website.md": [
        f"the number of reviews, {EMBEDDED['minimum']} to {EMBEDDED['maximum']}",
        f"the {WORDS[EMBEDDED['default']]} newest reviews",
    ],
}


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        pytest.param(document, sentence, id=sentence)
        for document, sentences in SENTENCES.items()
        for sentence in sentences
    ],
)
def test_a_number_in_a_sentence_is_that_of_the_program(
    document: str, sentence: str
) -> None:
    text_of_document = (ROOT / document).read_text(encoding="utf-8")

    assert sentence in re.sub(r"\s+", " ", text_of_document)


def test_a_tenth_is_what_documents_call_the_limits_of_imports() -> None:
    assert ledger.MAX_REMOVED_SHARE == exports.MAX_FAILED_SHARE == 0.1


def test_the_readme_names_the_oldest_python_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"needs Python {oldest} or later" in readme


def test_retries_are_as_documented() -> None:
    first, second = SETTINGS.hub_retry_delays

    assert (first, second) == (60, HOUR_SECONDS)
    assert rows.MAX_DELAY_SECONDS == HOUR_SECONDS
    assert SETTINGS.hub_lease_min == HOUR_SECONDS


def test_the_defaults_of_insights_are_as_documented() -> None:
    document = (ROOT / "docs" / "insights.md").read_text(encoding="utf-8")
    options = command.parse(["--data", "d", "--url", "http://u/v1", "--model", "m"])

    assert f"requests at once ({options.parallel})" in document
    assert f"for an answer and its retries ({options.timeout:g})" in document

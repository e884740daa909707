"""`reviewsd-insights`: a language model annotates the reviews, and insights are counted from the annotations.

Files are written under the lock that imports use. The daemon does not import this module; it notices that
`insights.json` has changed.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from reviewslib import files
from reviewslib.annotator import prompts
from reviewslib.annotator.client import Client, Outcome
from reviewslib.annotator.prompts import Prompt, Reviews
from reviewslib.dataset import counting, insights
from reviewslib.dataset.contract import shipped_contract
from reviewslib.dataset.counting import (
    ANNOTATIONS_FILE,
    COUNTED_FILES,
    EDITORIAL_FILE,
    Sources,
)
from reviewslib.dataset.insights import PROPOSED
from reviewslib.dataset.strict_json import Json, decode, encode
from reviewslib.terminal import CommandFailed, exit_status, say

Merging = Callable[
    [list[Json]], dict[str, Json]
]  # answers become keys of an EditorialFile
START_OF_LINE = "\r\x1b[K"  # on a terminal; clears the line
MOST = 1_000_000  # for options that are numbers


class Reading:
    """A data directory, and the model that reads it. An import may change the files between two calls."""

    def __init__(
        self, options: argparse.Namespace, clock: Callable[[], float] = time.monotonic
    ):
        self._client = Client(
            options.url, options.model, options.timeout, options.key_variable
        )
        self._options = options
        self._model = options.model
        self._clock = clock
        self._contract = shipped_contract()

    def run(self) -> None:
        """Carry out the command. Raises BadData, CommandFailed, OSError and KeyboardInterrupt."""
        if (
            EDITORIAL_FILE
            in counting.count(
                self._contract, self._contents(), datetime.now(UTC)
            ).contents
        ):
            reason = "insights.json was not counted; reviewsd-import --count moves it to editorial.json"
            raise CommandFailed(reason)
        spread = prompts.spread(self._sources().reviews)
        task = self._task()
        if self._options.dry_run:
            self._preview(*task)
            return
        if task[0] is prompts.VOCABULARY:
            say(
                f"{EDITORIAL_FILE} lists no aspects; the model reads {len(spread)} reviews to propose some."
            )
            self._propose(*task, prompts.proposed_vocabulary)
            if not self._options.yes:
                say("Then give the same command again.")
                return
        try:
            self._annotate(*self._task())
            if self._options.summary:
                batch = next(prompts.SUMMARY.batches(spread, self._model), [])
                self._propose(prompts.SUMMARY, batch, lambda answers: answers[0])
        finally:
            with self._changes() as changes:
                count = counting.count(
                    self._contract, self._contents(), datetime.now(UTC)
                )
                changes |= count.contents
            say(*count.lines, "The insights are counted.")

    def _task(self) -> tuple[Prompt, Reviews]:
        """The prompt for annotations, or before there are aspects for a vocabulary; and its reviews."""
        sources = self._sources()
        if not sources.editorial.get("aspects"):
            return prompts.VOCABULARY, prompts.spread(sources.reviews)
        unread = insights.unread_reviews(*sources, again=self._options.again)
        return prompts.annotation_prompt(sources.editorial), unread[
            : self._options.limit
        ]

    def _preview(self, prompt: Prompt, reviews: Reviews) -> None:
        """Print the first request, and the number and total size of all requests."""
        requests = [
            prompt.request(batch, self._model)
            for batch in prompt.batches(reviews, self._model)
        ]
        say(*json.dumps(requests[0], indent=1).splitlines() if requests else ())
        size = f"{len(requests)} requests, {sum(map(prompts.characters, requests))} characters"
        say(f"{size}, for {len(reviews)} reviews. Nothing was sent.")

    def _annotate(self, prompt: Prompt, reviews: Reviews) -> None:
        """Have the model annotate reviews; the annotations of each batch are written when they arrive."""
        for batch, answer in self._outcomes(prompt, reviews):
            lists = (
                answer
                if isinstance(answer, dict)
                else {batch[0]["id"]: {"failed": str(answer)}}
            )
            with self._changes() as changes:
                before = decode(
                    files.content_of(self._options.data / ANNOTATIONS_FILE) or b"{}"
                )
                after = insights.extended_annotations(
                    before, batch, lists, prompt.entries, self._model
                )
                changes[ANNOTATIONS_FILE] = encode(after)

    def _propose(self, prompt: Prompt, reviews: Reviews, merged: Merging) -> None:
        """Add proposals to editorial.json. What the owner wrote stays; earlier proposals are replaced."""
        answers = [
            answer
            for _, answer in self._outcomes(prompt, reviews)
            if isinstance(answer, dict)
        ]
        if not answers or not (proposals := merged(answers)):
            raise CommandFailed(f"the model proposes no {prompt.name}")
        with self._changes() as changes:
            old = self._sources().editorial
            own = {
                key: old[key]
                for key in old
                if old[key] and not key.startswith(PROPOSED)
            }
            changes[EDITORIAL_FILE] = counting.readable(old | proposals | own)
        say(
            f"{EDITORIAL_FILE} now has {', '.join(proposals)}. Check them, and change what you like."
        )
        say(f"What begins with {PROPOSED} is not used until you remove this prefix.")

    def _outcomes(self, prompt: Prompt, reviews: Reviews) -> Iterator[Outcome]:
        """The outcomes of a prompt; reports progress after each on a terminal, once a minute elsewhere."""
        start = reported = self._clock()
        count = 0
        is_terminal = bool(sys.stdout and sys.stdout.isatty())
        try:
            for outcome in self._client.outcomes(
                prompt, reviews, self._options.parallel
            ):
                yield outcome
                count += len(outcome[0])
                now = self._clock()
                left = len(reviews) - count
                rate = count / max(now - start, 1) * 60
                line = f"{count} read, {left} left, {rate:.0f} a minute, {left / rate:.0f} min left"
                if is_terminal:
                    print(f"{START_OF_LINE}{line}", end="", flush=True)
                elif now >= reported + 60:
                    reported = now
                    say(line)
        finally:
            if is_terminal and count:
                print()

    def _sources(self) -> Sources:
        return counting.read_sources(self._contract, self._contents())

    def _contents(self) -> dict[str, bytes | None]:
        return {
            file: files.content_of(self._options.data / file) for file in COUNTED_FILES
        }

    @contextmanager
    def _changes(self) -> Iterator[dict[str, bytes]]:
        """What the caller adds, as contents by file name, is written; imports wait until then."""
        with files.locked(self._options.data, is_dry=False, waits=True):
            yield (changes := dict[str, bytes]())
            for file, content in changes.items():
                files.write(self._options.data / file, content)


# ---- Command line ----


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; exits with status 2 if they are wrong."""
    about = "Have a language model read the reviews, and count what they say."
    parser = argparse.ArgumentParser("reviewsd-insights", description=about)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="the directory of reviews.json")
    add("--url", required=True, help="the server, such as http://127.0.0.1:11434/v1")
    add("--model", required=True, help="the model, as the server calls it")
    add(
        "--key-variable",
        default="",
        metavar="NAME",
        help="environment variable that holds the server's key",
    )
    add("--parallel", type=int, default=2, help="requests at once (default: 2)")
    add(
        "--timeout",
        type=int,
        default=600,
        help="seconds for an answer and its retries (default: 600)",
    )
    add(
        "--limit",
        type=int,
        default=MOST,
        help="read at most this many reviews this time",
    )
    add(
        "--yes",
        action="store_true",
        help="continue with the aspects and topics that the model proposes",
    )
    add("--again", action="store_true", help="also read reviews that failed before")
    add(
        "--summary",
        action="store_true",
        help="also propose a summary, a quotation and questions",
    )
    add(
        "--dry-run",
        action="store_true",
        help="print the first request and the total size; send nothing",
    )
    options = parser.parse_args(arguments)
    if not all(
        1 <= number <= MOST
        for number in (options.parallel, options.timeout, options.limit)
    ):
        parser.error(f"--parallel, --timeout and --limit take numbers from 1 to {MOST}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return exit_status(lambda: Reading(parse(arguments)).run())


if __name__ == "__main__":
    sys.exit(main())

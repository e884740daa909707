"""`reviewsd-insights`: a language model annotates reviews, and insights are counted.

Files are written under the lock that imports use. This module knows neither the
protocol of the model nor the daemon, which notices by itself that `insights.json`
has changed.

Sections: the reading - progress - the command line.
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
from itertools import chain
from pathlib import Path

from reviewslib import files
from reviewslib.annotator import prompts
from reviewslib.annotator.client import BatchOutcome, ModelClient
from reviewslib.annotator.prompts import BadAnswer, Prompt
from reviewslib.dataset import counting, mentions
from reviewslib.dataset.contract import shipped_contract
from reviewslib.dataset.counting import (
    ANNOTATIONS_FILE,
    COUNTED_FILES,
    EDITORIAL_FILE,
    Count,
    Sources,
)
from reviewslib.dataset.figures import ReviewObjects
from reviewslib.dataset.strict_json import Json, decode, encode
from reviewslib.dataset.vocabulary import PROPOSED
from reviewslib.terminal import CommandFailed, exit_status, say

# The key of an EditorialFile for aspects that only one answer has.
PROPOSED_ASPECTS = f"{PROPOSED}aspects"
# Answers become keys of an EditorialFile.
Merging = Callable[[list[Json]], dict[str, Json]]

# ---- The reading ----


class Reading:
    """A data directory, and the model that reads it.

    An import may change the files between two calls, so each step reads them anew.
    """

    def __init__(
        self, options: argparse.Namespace, clock: Callable[[], float] = time.monotonic
    ):
        self._client = ModelClient(
            base=options.url,
            model=options.model,
            timeout=options.timeout,
            key_variable=options.key_variable,
            key_file=options.key_file,
        )
        self._options = options
        self._model = options.model
        self._clock = clock
        self._contract = shipped_contract()
        # Reviews that got a usable answer.
        self._read_count = 0

    def run(self) -> None:
        """Carry out the command.

        Raises BadData, CommandFailed, OSError and KeyboardInterrupt.
        """
        if EDITORIAL_FILE in self._count().contents:
            raise CommandFailed(
                "insights.json was not counted;"
                " reviewsd-import --count moves it to editorial.json"
            )
        if self._options.dry_run:
            self._preview(*self._task())
            return
        if not self._has_vocabulary():
            self._prepare_vocabulary()
            if not self._has_vocabulary() or not self._options.yes:
                say("Then give the same command again.")
                return
        try:
            self._annotate(*self._task())
            if self._options.summary:
                self._propose_summary()
        finally:
            # What was read is counted, however the reading ended.
            self._write_insights()

    def _has_vocabulary(self) -> bool:
        return bool(self._sources().editorial.get("aspects"))

    def _prepare_vocabulary(self) -> None:
        """Have aspects and topics proposed, unless the owner has some to choose from.

        A timer must not pay for the same proposals every night.
        """
        if not self._sources().editorial.get(PROPOSED_ASPECTS):
            self._propose_vocabulary(prompts.spread(self._sources().reviews))
        if not self._has_vocabulary():
            say(
                f"{EDITORIAL_FILE} has no aspects that two answers have in common:"
                f" move the right ones from {PROPOSED_ASPECTS} to aspects,"
                f" or remove {PROPOSED_ASPECTS} to have others proposed."
            )

    def _task(self) -> tuple[Prompt, ReviewObjects]:
        """What the model is asked next: annotations, or first a vocabulary for them."""
        sources = self._sources()
        if not self._has_vocabulary():
            return prompts.VOCABULARY, prompts.spread(sources.reviews)
        unread = mentions.unread_reviews(*sources, again=self._options.again)
        prompt = prompts.annotation_prompt(sources.editorial)
        return prompt, unread[: self._options.limit]

    def _preview(self, prompt: Prompt, reviews: ReviewObjects) -> None:
        """Print the first request, and the number and total size of all requests."""
        batches = prompt.batches(reviews, self._model)
        requests = [prompt.request(batch, self._model) for batch in batches]
        if requests:
            text = json.dumps(requests[0], indent=1, ensure_ascii=False)
            say(*text.splitlines())
        characters = sum(map(prompts.characters, requests))
        say(
            f"{len(requests)} requests, {characters} characters,"
            f" for {len(reviews)} reviews. Nothing was sent."
        )

    def _propose_vocabulary(self, reviews: ReviewObjects) -> None:
        say(
            f"{EDITORIAL_FILE} lists no aspects;"
            f" the model reads {len(reviews)} reviews to propose some."
        )
        self._propose(prompts.VOCABULARY, reviews, prompts.proposed_vocabulary)

    def _propose_summary(self) -> None:
        """One request: a summary rests on as many reviews as fit into one."""
        reviews = prompts.spread(self._sources().reviews)
        first = prompts.SUMMARY.batches(reviews, self._model)[:1]
        batch = list(chain.from_iterable(first))
        self._propose(prompts.SUMMARY, batch, lambda answers: answers[0])

    def _annotate(self, prompt: Prompt, reviews: ReviewObjects) -> None:
        """Have the model annotate reviews.

        The annotations of each batch are written when they arrive, so a stopped
        command continues where it was.
        """
        for batch, answer in self._outcomes(prompt, reviews):
            if isinstance(answer, BadAnswer):
                lists: Json = {batch[0]["id"]: {"failed": str(answer)}}
            else:
                lists = answer
                self._read_count += len(batch)
            with self._changes() as changes:
                before = files.content_of(self._options.data / ANNOTATIONS_FILE)
                after = mentions.extended_annotations(
                    decode(before or b"{}"), batch, lists, prompt.entries, self._model
                )
                changes[ANNOTATIONS_FILE] = encode(after)

    def _propose(self, prompt: Prompt, reviews: ReviewObjects, merged: Merging) -> None:
        """Add proposals to editorial.json.

        What the owner wrote stays; earlier proposals are replaced.
        """
        outcomes = self._outcomes(prompt, reviews)
        answers = [answer for _, answer in outcomes if isinstance(answer, dict)]
        proposals = merged(answers) if answers else None
        if not proposals:
            raise CommandFailed(f"the model proposes no {prompt.name}")
        with self._changes() as changes:
            before = self._sources().editorial
            own = {
                key: value
                for key, value in before.items()
                if value and not key.startswith(PROPOSED)
            }
            changes[EDITORIAL_FILE] = counting.readable(before | proposals | own)
        say(
            f"{EDITORIAL_FILE} now has {', '.join(proposals)}."
            " Check them, and change what you like."
        )
        say(
            f"What begins with {PROPOSED} is not used until you remove this prefix,"
            " or move its entries."
        )

    def _outcomes(
        self, prompt: Prompt, reviews: ReviewObjects
    ) -> Iterator[BatchOutcome]:
        """The outcomes of a prompt; the progress is reported after each."""
        progress = Progress(len(reviews), self._clock)
        try:
            for outcome in self._client.outcomes(
                prompt, reviews, self._options.parallel, progress.tick
            ):
                yield outcome
                progress.add(len(outcome[0]))
        finally:
            progress.end()

    def _write_insights(self) -> None:
        with self._changes() as changes:
            count = self._count()
            changes |= count.contents
        say(*count.lines, self._end_text(), "The insights are counted.")

    def _end_text(self) -> str:
        """What became of the reviews with words."""
        sources = self._sources()
        worded = [review for review in sources.reviews if mentions.has_words(review)]
        left = {review["id"] for review in mentions.unread_reviews(*sources)}
        current = mentions.current_annotations(worded, sources.annotations)["reviews"]
        failed = [
            id for id, said in current.items() if said.get("failed") and id not in left
        ]
        # What nobody had to read again, whoever read it before.
        reused = len(worded) - self._read_count - len(failed) - len(left)
        return (
            f"reviews with words: {self._read_count} read, {reused} reused,"
            f" {len(failed)} failed, {len(left)} left"
        )

    def _count(self) -> Count:
        return counting.count(self._contract, self._contents(), datetime.now(UTC))

    def _sources(self) -> Sources:
        return counting.read_sources(self._contract, self._contents())

    def _contents(self) -> dict[str, bytes | None]:
        directory = self._options.data
        return {file: files.content_of(directory / file) for file in COUNTED_FILES}

    @contextmanager
    def _changes(self) -> Iterator[dict[str, bytes]]:
        """What the caller adds, as contents by file name, is written.

        Imports wait until then.
        """
        with files.locked(self._options.data, is_dry=False, waits=True):
            changes = dict[str, bytes]()
            yield changes
            for file, content in changes.items():
                files.check_size(self._options.data / file, content)
            for file, content in changes.items():
                files.write(self._options.data / file, content)


# ---- Progress ----

# Without a terminal, in a log: often enough to see that it goes on.
SECONDS_BETWEEN_LINES = 60
# On a terminal: back to the first column, and clear the line.
START_OF_LINE = "\r\x1b[K"


class Progress:
    """How far a reading is: on a terminal one changing line, else a line a minute."""

    def __init__(self, total: int, clock: Callable[[], float]):
        self._total = total
        self._clock = clock
        self._start = clock()
        self._reported = self._start
        self._count = 0
        # Without standard output there is none to ask.
        self._is_terminal = bool(sys.stdout and sys.stdout.isatty())

    def add(self, count: int) -> None:
        """Count reviews that were read, and say so when it is time."""
        self._count += count
        if self._is_terminal:
            now = self._clock()
            print(f"{START_OF_LINE}{self._line(now)}", end="", flush=True)
        else:
            self.tick()

    def tick(self) -> None:
        """Without a terminal, say how far it is if a minute has passed."""
        if self._is_terminal:
            return
        now = self._clock()
        if now < self._reported + SECONDS_BETWEEN_LINES:
            return
        self._reported = now
        say(self._line(now))

    def end(self) -> None:
        """Leave the changing line as it is; what follows begins below."""
        if self._is_terminal and self._count:
            print()

    def _line(self, now: float) -> str:
        left = self._total - self._count
        line = f"{self._count} read, {left} left"
        # The first answer may come within the clock's resolution.
        a_minute = self._count / max(now - self._start, 1) * 60
        if a_minute:
            line += f", {a_minute:.0f} a minute, {left / a_minute:.0f} min left"
        return line


# ---- The command line ----

# For options that are numbers. More reviews than the service takes, and more seconds
# than a week has; threads beyond reason fail by themselves.
MOST = 1_000_000


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; exits with status 2 if they are wrong."""
    parser = argparse.ArgumentParser(
        "reviewsd-insights",
        description="Have a language model read the reviews, and count what they say.",
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="the directory of reviews.json")
    add("--url", required=True, help="the server, such as http://127.0.0.1:11434/v1")
    add("--model", required=True, help="the model, as the server calls it")
    key = parser.add_mutually_exclusive_group()
    key.add_argument(
        "--key-variable",
        default="",
        metavar="NAME",
        help="environment variable that holds the server's key",
    )
    key.add_argument(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="file that holds the server's key",
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
    numbers = (options.parallel, options.timeout, options.limit)
    if min(numbers) < 1 or max(numbers) > MOST:
        parser.error(f"--parallel, --timeout and --limit take numbers from 1 to {MOST}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return exit_status(lambda: Reading(parse(arguments)).run())


if __name__ == "__main__":
    sys.exit(main())

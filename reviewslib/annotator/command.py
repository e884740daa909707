"""`reviewsd-insights`: a language model annotates the reviews, and insights are counted from the annotations.

Files are written under the lock that imports use. The daemon does not import this module; it notices that
`insights.json` has changed.
"""

from __future__ import annotations

import argparse
import io
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TextIO

from reviewslib import files
from reviewslib.annotator import prompts
from reviewslib.annotator.client import Client, Outcomes, Stopped
from reviewslib.annotator.prompts import BadAnswer, Prompt, Reviews
from reviewslib.dataset import counting, insights
from reviewslib.dataset.contract import BadData, printable, shipped_contract
from reviewslib.dataset.counting import ANNOTATIONS_FILE, COUNTED_FILES, EDITORIAL_FILE, Contents, Sources
from reviewslib.dataset.insights import PROPOSED
from reviewslib.dataset.strict_json import Json, decode, encode

EXIT_SUCCESS, EXIT_FAILURE, EXIT_BAD_DATA, EXIT_STOPPED = 0, 1, 78, 130  # argparse exits with 2
CLEARED_LINE = "\r\x1b[K"  # on a terminal


def say(stream: TextIO, *lines: str, end: str = "\n") -> None:
    """Print lines, with control characters escaped; on a terminal, they replace the line of progress."""
    for line in lines:
        print(f"{CLEARED_LINE if stream.isatty() else ''}{printable(line)}", file=stream, end=end, flush=True)


# ---- Reading ----


class Reading:
    """A data directory, and the model that reads it. An import may change the files between two calls."""

    def __init__(
        self, options: argparse.Namespace, output: TextIO, clock: Callable[[], float] = time.monotonic
    ):
        self._client = Client(options.url, options.model, options.timeout, options.key_variable)
        self._options, self._data, self._contract = options, options.data, shipped_contract()
        self._say, self._clock, self._is_terminal = partial(say, output), clock, output.isatty()

    def run(self) -> None:
        """Carry out the command. Raises BadData, Stopped, OSError and KeyboardInterrupt."""
        if EDITORIAL_FILE in self._counted().contents:
            raise Stopped("insights.json was not counted; reviewsd-import --count moves it to editorial.json")
        sources = self._sources()
        has_aspects, spread = bool(sources.editorial.get("aspects")), prompts.spread(sources.reviews)
        if self._options.dry_run:
            task = self._annotation_task(sources) if has_aspects else (prompts.VOCABULARY, spread)
            self._preview(*task)
            return
        if not has_aspects:
            self._propose_vocabulary(spread)
            if not self._options.yes:
                self._say("Then give the same command again.")
                return
        try:
            self._annotate(self._sources())
            if self._options.summary:
                self._propose_summary(spread)
        finally:
            self._count()

    def _annotation_task(self, sources: Sources) -> tuple[Prompt, Reviews]:
        """The prompt for annotations, and the reviews to annotate."""
        unread = insights.unread_reviews(*sources, again=self._options.again)
        return prompts.annotation_prompt(sources.editorial), unread[: self._options.limit]

    def _preview(self, prompt: Prompt, reviews: Reviews) -> None:
        """Print the first request, and the number and total size of all requests."""
        model = self._options.model
        requests = [prompt.request(batch, model) for batch in prompt.batches(reviews, model)]
        for request in requests[:1]:
            self._say(*json.dumps(request, indent=1).splitlines())
        size = f"{len(requests)} requests, {sum(map(prompts.characters, requests))} characters"
        self._say(f"{size}, for {len(reviews)} reviews. Nothing was sent.")

    def _annotate(self, sources: Sources) -> None:
        """Have the model annotate reviews; the annotations of each batch are written when they arrive."""
        annotations, written, path = dict[str, Json](), b"", self._data / ANNOTATIONS_FILE
        for batch, outcome in self._outcomes(*self._annotation_task(sources)):
            is_failure = isinstance(outcome, BadAnswer)
            lists = {batch[0]["id"]: {"failed": str(outcome)}} if is_failure else outcome
            with self._locked():
                if (content := self._content(ANNOTATIONS_FILE)) != written:  # at first, and after an import
                    annotations = decode(content or b"{}")
                source = sources.editorial, self._options.model
                annotations = insights.extended_annotations(annotations, batch, lists, *source)
                written = encode(annotations)
                files.write(path, written)

    def _propose_vocabulary(self, reviews: Reviews) -> None:
        """Have the model propose what reviews can mention, and write it into editorial.json."""
        task = f"{self._options.model} reads {len(reviews)} reviews to propose some"
        self._say(f"{EDITORIAL_FILE} lists no aspects: {task}.")
        vocabulary = prompts.merged_vocabulary(self._answers(prompts.VOCABULARY, reviews))
        people = {kind: vocabulary.pop(kind) for kind in ("technicians", "services")}
        if not vocabulary["aspects"]:
            raise Stopped(f"the model proposes no aspects; list some in {EDITORIAL_FILE}")
        self._propose(vocabulary | ({"proposed_entities": people} if any(people.values()) else {}))

    def _propose_summary(self, reviews: Reviews) -> None:
        """Have the model write a summary, a quotation and questions, as proposals in editorial.json."""
        batch = next(prompts.SUMMARY.batches(reviews, self._options.model), [])
        proposals = [answer for answer in self._answers(prompts.SUMMARY, batch) if answer]
        if not proposals:
            raise Stopped("the model proposes no summary")
        self._propose(proposals[0])

    def _propose(self, proposals: dict[str, Json]) -> None:
        """Add keys to editorial.json. What the owner wrote stays; earlier proposals are replaced."""
        with self._locked():
            editorial = self._sources().editorial
            own = {
                key: editorial[key] for key in editorial if editorial[key] and not key.startswith(PROPOSED)
            }
            files.write(self._data / EDITORIAL_FILE, counting.readable(editorial | proposals | own))
        self._say(
            f"{EDITORIAL_FILE} now has {', '.join(proposals)}. Check them, and change what you like.",
            f"What begins with {PROPOSED} is not used until you remove this prefix.",
        )

    def _answers(self, prompt: Prompt, reviews: Reviews) -> list[Json]:
        outcomes = self._outcomes(prompt, reviews)
        return [outcome for _, outcome in outcomes if not isinstance(outcome, BadAnswer)]

    def _outcomes(self, prompt: Prompt, reviews: Reviews) -> Outcomes:
        """The outcomes of a prompt; reports progress after each on a terminal, once a minute elsewhere."""
        start = last_line = self._clock()
        count = 0
        for batch, outcome in self._client.outcomes(prompt, reviews, self._options.parallel):
            yield batch, outcome
            count += len(batch)
            now, left = self._clock(), len(reviews) - count
            if self._is_terminal or now >= last_line + 60:
                last_line, rate = now, count / max(now - start, 1) * 60
                line = f"{count} read, {left} left, {rate:.0f} a minute, {left / rate:.0f} min left"
                self._say(line, end="" if self._is_terminal else "\n")

    def _count(self) -> None:
        """Count the insights, write the files, and report."""
        with self._locked():
            result = self._counted()
            for file, content in result.contents.items():
                files.write(self._data / file, content)
        self._say(*result.lines, "The insights are counted.")

    def _counted(self) -> counting.Count:
        return counting.count(self._contract, self._contents(), datetime.now(UTC))

    def _sources(self) -> Sources:
        return counting.read_sources(self._contract, self._contents())

    def _contents(self) -> Contents:
        return {file: self._content(file) for file in COUNTED_FILES}

    def _content(self, file: str) -> bytes | None:
        path = self._data / file
        return files.read_unchanging(path)[0] if path.exists() else None

    def _locked(self) -> AbstractContextManager[None]:
        return files.locked(self._data, is_dry=False, waits=True)


# ---- Command line ----


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; exits with status 2 if they are wrong."""
    about = "Have a language model read the reviews, and count what they say."
    parser = argparse.ArgumentParser("reviewsd-insights", description=about)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="the directory of reviews.json")
    add("--url", required=True, help="the server, such as http://127.0.0.1:11434/v1")
    add("--model", required=True, help="the model, as the server calls it")
    add("--key-variable", default="", metavar="NAME", help="environment variable that holds the server's key")
    add("--parallel", type=positive, default=2, help="requests at once (default: 2)")
    add("--timeout", type=positive, default=600, help="seconds for an answer and its retries (default: 600)")
    add("--limit", type=positive, help="read at most this many reviews this time")
    add("--yes", action="store_true", help="continue with the aspects and topics that the model proposes")
    add("--again", action="store_true", help="also read reviews that failed before")
    add("--summary", action="store_true", help="also propose a summary, a quotation and questions")
    add("--dry-run", action="store_true", help="print the first request and the total size; send nothing")
    return parser.parse_args(arguments)


def positive(text: str) -> int:
    """An integer from 1 to a million. Raises ValueError."""
    if not 1 <= int(text) <= 1_000_000:
        raise ValueError
    return int(text)


def main(arguments: Sequence[str] | None = None, output: TextIO | None = None) -> int:
    """Run the command line, which prints to `output`, else to the standard output; the exit status."""
    output = output or sys.stdout
    for stream in (output, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        Reading(options, output).run()
        return EXIT_SUCCESS
    except BadData as fault:
        lines, status = fault.lines(), EXIT_BAD_DATA
    except KeyboardInterrupt:
        lines, status = ["Stopped."], EXIT_STOPPED
    except Stopped as reason:
        lines, status = [f"Stopped: {reason}."], EXIT_FAILURE
    except OSError as error:
        lines, status = [f"{error.filename or 'the output'}: {error.strerror}"], EXIT_FAILURE
    say(sys.stderr, *lines)
    return status


if __name__ == "__main__":
    sys.exit(main())

"""`reviewsd-insights`: a language model annotates the reviews, and insights are counted from the annotations.

Files are written under the lock that imports use. Requests run on threads of their own. The daemon does not
import this module; it notices that `insights.json` has changed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reviewslib import files
from reviewslib.annotator import prompts
from reviewslib.annotator.client import Client, Stopped, key_for
from reviewslib.annotator.prompts import BadAnswer, Prompt, Reviews
from reviewslib.dataset import counting, insights
from reviewslib.dataset.contract import BadData, printable, shipped_contract
from reviewslib.dataset.counting import ANNOTATIONS_FILE, EDITORIAL_FILE, SOURCE_FILES, Sources, readable
from reviewslib.dataset.insights import PROPOSED
from reviewslib.dataset.reviews import REVIEWS_FILE
from reviewslib.dataset.strict_json import Json, Object, encode

EXIT_SUCCESS, EXIT_FAILURE, EXIT_BAD_DATA, EXIT_STOPPED = 0, 1, 78, 130  # argparse exits with 2
CLEARED_LINE = "\r\x1b[K"  # on a terminal

# ---- Data directory ----


class DataDirectory:
    """The files of `--data`; an import may change them between two calls. Raises BadData and OSError."""

    def __init__(self, path: Path):
        self.path, self._contract = path, shipped_contract()

    def read(self, file: str) -> Json:
        """One of the files that insights are counted from."""
        return counting.read_source(self._contract, file, self._content(file))

    def sources(self) -> Sources:
        """What insights are counted from."""
        return Sources(*map(self.read, SOURCE_FILES))

    def count(self) -> counting.Count:
        """Count the insights of the present files; nothing is written."""
        contents = {file: self._content(file) for file in counting.COUNTED_FILES}
        return counting.count(self._contract, contents, datetime.now(UTC))

    def _content(self, file: str) -> bytes | None:
        path = self.path / file
        return files.read_unchanging(path)[0] if path.exists() else None


# ---- Output ----


def say(line: str, *, is_error: bool = False, end: str = "\n") -> None:
    """Print a line, with control characters escaped; on a terminal it replaces the line of the progress."""
    stream = sys.stderr if is_error else sys.stdout
    print(f"{CLEARED_LINE if stream.isatty() else ''}{printable(line)}", file=stream, end=end, flush=True)


class Progress:
    """Says how many reviews have been read: on a terminal at once, elsewhere once a minute."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic):
        self._count, self._total, self._clock = 0, total, clock
        self._start = self._last_line = clock()

    def add(self, count: int) -> None:
        """More reviews have been read."""
        self._count += count
        now, left = self._clock(), self._total - self._count
        rate = self._count / max(now - self._start, 1) * 60
        line = f"{self._count} read, {left} left, {rate:.0f} a minute, {left / rate:.0f} min left"
        if sys.stdout.isatty():
            say(line, end="")
        elif now >= self._last_line + 60:
            self._last_line = now
            say(line)


# ---- Requests ----

FAILURES_IN_A_ROW = 5  # of single reviews; as many mean that the server or the model fails, not a review


def outcomes(
    client: Client,
    prompt: Prompt,
    reviews: Reviews,
    parallel: int,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[Reviews, Any]]:
    """Pairs of a batch of reviews and its parsed answer, or of a single review and its BadAnswer.

    A batch without a usable answer is halved. Raises Stopped, also if a request has no answer within the
    timeout of the client. The threads are daemon threads, so that a hanging server delays neither Ctrl-C nor
    the exit.
    """
    batches, failures = deque(prompt.batches(reviews, client.model)), 0
    starts = list[float]()  # of the requests that have no outcome
    results = queue.SimpleQueue[tuple[float, Reviews, Any]]()

    def ask(start: float, batch: Reviews) -> None:
        try:
            results.put((start, batch, client.ask(prompt, batch)))
        except Exception as error:
            results.put((start, batch, error))

    while batches or starts:
        while batches and len(starts) < parallel:
            starts.append(clock())
            threading.Thread(target=ask, args=[starts[-1], batches.popleft()], daemon=True).start()
        try:
            start, batch, outcome = results.get(timeout=max(0, min(starts) + client.timeout - clock()))
        except queue.Empty:
            raise Stopped(
                f"no answer within {client.timeout} s; raise --timeout if the server is slow"
            ) from None
        starts.remove(start)
        if isinstance(outcome, Exception) and not isinstance(outcome, BadAnswer):
            raise outcome
        if isinstance(outcome, BadAnswer) and len(batch) > 1:
            middle = len(batch) // 2
            batches.extendleft([batch[middle:], batch[:middle]])
            continue
        yield batch, outcome
        failures = failures + 1 if isinstance(outcome, BadAnswer) else 0
        if failures == FAILURES_IN_A_ROW:
            raise Stopped(f"{failures} reviews in a row got no usable answer; of the last: {outcome}")


# ---- Tasks ----


def propose_vocabulary(data: DataDirectory, client: Client) -> None:
    """Have the model propose what reviews can mention, and write it into editorial.json."""
    reviews: Reviews = prompts.spread(data.read(REVIEWS_FILE))
    answers = list[Json]()
    say(f"{EDITORIAL_FILE} lists no aspects: {client.model} reads {len(reviews)} reviews to propose some.")
    vocabulary, progress = prompts.merged_vocabulary([]), Progress(len(reviews))
    while reviews:
        prompt = prompts.vocabulary_prompt(vocabulary)
        batch = next(prompt.batches(reviews, client.model))
        answers += usable_answers(client, prompt, batch)
        vocabulary, reviews = prompts.merged_vocabulary(answers), reviews[len(batch) :]
        progress.add(len(batch))
    people = {kind: vocabulary.pop(kind) for kind in ("technicians", "services")}
    if not vocabulary["aspects"]:
        raise Stopped("the model proposes no aspects; list some in editorial.json")
    propose(data, vocabulary | ({"proposed_entities": people} if any(people.values()) else {}))


def annotate(data: DataDirectory, client: Client, reviews: Reviews, parallel: int) -> None:
    """Have the model annotate reviews; the annotations of each batch are written when its answer arrives."""
    editorial, progress = data.read(EDITORIAL_FILE), Progress(len(reviews))
    for batch, outcome in outcomes(client, prompts.annotation_prompt(editorial), reviews, parallel):
        is_failure = isinstance(outcome, BadAnswer)
        lists = {batch[0]["id"]: {"failed": str(outcome)}} if is_failure else outcome
        with files.locked(data.path, is_dry=False, waits=True):
            annotations = data.read(ANNOTATIONS_FILE)
            new = insights.extended_annotations(annotations, batch, lists, editorial, client.model)
            files.write(data.path / ANNOTATIONS_FILE, encode(new))
        progress.add(len(batch))


def propose_summary(data: DataDirectory, client: Client) -> None:
    """Have the model write a summary, a quotation and questions, as proposals in editorial.json."""
    prompt = prompts.summary_prompt()
    batch = next(prompt.batches(prompts.spread(data.read(REVIEWS_FILE)), client.model), [])
    answers = usable_answers(client, prompt, batch)
    if not any(answers):
        raise Stopped("the model proposes no summary")
    propose(data, answers[0])


def usable_answers(client: Client, prompt: Prompt, batch: Reviews) -> list[Json]:
    """The answers to a prompt, without BadAnswer; more than one if the batch was halved."""
    results = [outcome for _, outcome in outcomes(client, prompt, batch, 1)]
    return [outcome for outcome in results if not isinstance(outcome, BadAnswer)]


def propose(data: DataDirectory, proposals: Object) -> None:
    """Add keys to editorial.json. What the owner wrote stays; earlier proposals are replaced."""
    with files.locked(data.path, is_dry=False, waits=True):
        editorial = data.read(EDITORIAL_FILE)
        owned = {key: editorial[key] for key in editorial if editorial[key] and not key.startswith(PROPOSED)}
        files.write(data.path / EDITORIAL_FILE, readable(editorial | proposals | owned))
    say(f"{EDITORIAL_FILE} now has {', '.join(proposals)}. Check them, and change what you like.")
    say(f"What begins with {PROPOSED} is not used until you remove this prefix.")


def count_insights(data: DataDirectory) -> None:
    """Count the insights, write the files, and report."""
    with files.locked(data.path, is_dry=False, waits=True):
        result = data.count()
        for file, content in result.contents.items():
            files.write(data.path / file, content)
    for line in [*result.lines, "The insights are counted."]:
        say(line)


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


def preview(sources: Sources, model: str, unread: Reviews) -> None:
    """Print the first request, and the number and total size of all requests."""
    prompt, reviews = prompts.annotation_prompt(sources.editorial), unread
    if not sources.editorial.get("aspects"):
        prompt, reviews = (
            prompts.vocabulary_prompt(prompts.merged_vocabulary([])),
            prompts.spread(sources.reviews),
        )
    requests = [prompt.request(batch, model) for batch in prompt.batches(reviews, model)]
    for request in requests[:1]:
        print(json.dumps(request, indent=1))
    total = sum(map(prompts.characters, requests))
    say(f"{len(requests)} requests, {total} characters, for {len(reviews)} reviews. Nothing was sent.")


def run(options: argparse.Namespace) -> None:
    """Carry out the command. Raises BadData, Stopped, OSError and KeyboardInterrupt."""
    data = DataDirectory(options.data)
    if EDITORIAL_FILE in data.count().contents:
        raise Stopped("insights.json was not counted; `reviewsd-import --count` turns it into editorial.json")
    key = key_for(options.url, options.key_variable, os.environ)
    client = Client(options.url, options.model, key, options.timeout)
    if not (options.dry_run or data.read(EDITORIAL_FILE).get("aspects")):
        propose_vocabulary(data, client)
        if not options.yes:
            say("Then give the same command again.")
            return
    sources = data.sources()
    unread = insights.unread_reviews(*sources, again=options.again)[: options.limit]
    if options.dry_run:
        preview(sources, options.model, unread)
        return
    try:
        annotate(data, client, unread, options.parallel)
        if options.summary:
            propose_summary(data, client)
    finally:
        count_insights(data)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a closed stream is None
            stream.reconfigure(errors="backslashreplace")
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(options)
        return EXIT_SUCCESS
    except BadData as fault:
        lines, status = fault.lines(), EXIT_BAD_DATA
    except KeyboardInterrupt:
        lines, status = ["Stopped."], EXIT_STOPPED
    except Stopped as reason:
        lines, status = [f"Stopped: {reason}."], EXIT_FAILURE
    except OSError as error:
        lines, status = [f"{error.filename or 'the output'}: {error.strerror}"], EXIT_FAILURE
    for line in lines:
        say(line, is_error=True)
    return status


if __name__ == "__main__":
    sys.exit(main())

"""`reviewsd-insights`: a language model annotates the reviews, and insights are counted from the annotations.

Files are written under the lock that imports use. Requests run on threads of their own. The daemon does not
import this module; it notices that `insights.json` has changed.

Sections: Data directory - Parallel requests - Tasks - Command line
"""

from __future__ import annotations

import argparse
import io
import json
import os
import queue
import re
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from reviewslib import files
from reviewslib.annotator import prompts
from reviewslib.annotator.client import Client, Stopped, key_for
from reviewslib.annotator.prompts import BadAnswer, Prompt, Reviews
from reviewslib.dataset import counting, insights
from reviewslib.dataset.contract import BadData, printable, shipped_contract
from reviewslib.dataset.counting import ANNOTATIONS_FILE, EDITORIAL_FILE, Sources, readable
from reviewslib.dataset.strict_json import Json, Object, encode

EXIT_SUCCESS, EXIT_FAILURE, EXIT_BAD_DATA, EXIT_STOPPED = 0, 1, 78, 130  # argparse exits with 2


def say(line: str) -> None:
    """Print a line, with control characters escaped."""
    print(printable(line), flush=True)


# ---- Data directory ----


class DataDirectory:
    """The files of `--data`; an import may change them between two calls. Raises BadData and OSError."""

    def __init__(self, path: Path):
        self.path, self._contract = path, shipped_contract()
        self.locked = partial(files.locked, path, is_dry=False, waits=True)  # against imports
        # A batch changes annotations.json only; unchanged files are not validated again.
        self._read = lru_cache(maxsize=4)(partial(counting.read_source, self._contract))

    def sources(self) -> Sources:
        """What insights are counted from."""
        contents = self._contents()
        return Sources(*(self._read(file, contents[file]) for file in counting.SOURCE_FILES))

    def count(self) -> counting.Count:
        """Count the insights of the present files; nothing is written."""
        return counting.count(self._contract, self._contents(), datetime.now(UTC))

    def _contents(self) -> dict[str, bytes | None]:
        paths = [self.path / file for file in counting.COUNTED_FILES]
        return {path.name: files.read_unchanging(path)[0] if path.exists() else None for path in paths}


# ---- Parallel requests ----

FAILURES_IN_A_ROW = 5  # of single reviews; as many mean that the server or the model fails, not a review


def outcomes(
    client: Client, prompt: Prompt, reviews: Reviews, parallel: int
) -> Iterator[tuple[Reviews, Any]]:
    """Pairs of a batch of reviews and its parsed answer, or of a single review and its BadAnswer.

    A batch without a usable answer is halved. Raises Stopped. The threads are daemon threads, so that a
    server that hangs delays neither Ctrl-C nor the exit of the program.
    """
    batches, failures = deque(prompt.batches(reviews, client.model)), 0
    results = queue.SimpleQueue[tuple[float, Reviews, Any]]()

    def ask(start: float, batch: Reviews) -> None:
        try:
            results.put((start, batch, client.ask(prompt._replace(reviews=batch))))
        except Exception as error:
            results.put((start, batch, error))

    starts = list[float]()  # times of the running requests
    while batches or starts:
        while batches and len(starts) < parallel:
            starts.append(time.monotonic())
            threading.Thread(target=ask, args=(starts[-1], batches.popleft()), daemon=True).start()
        try:
            seconds_left = min(starts) + client.timeout - time.monotonic()
            start, batch, outcome = results.get(timeout=max(seconds_left, 0))
        except queue.Empty:
            raise Stopped(client.timeout_message) from None
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

CLEARED_LINE = "\r\x1b[K"  # on a terminal


def propose_vocabulary(data: DataDirectory, client: Client) -> None:
    """Have the model propose what reviews can mention, and write it into editorial.json."""
    reviews: Reviews = prompts.spread(data.sources().reviews, prompts.SURVEYED_REVIEWS)
    say(f"{EDITORIAL_FILE} lists no aspects: {client.model} reads {len(reviews)} reviews to propose some.")
    answers, total, start = list[Json](), len(reviews), time.monotonic()
    while reviews:
        prompt = prompts.vocabulary_prompt(prompts.merged_labels(answers))
        batch, *_ = prompt.batches(reviews, client.model)
        results = [outcome for _, outcome in outcomes(client, prompt, batch, 1)]
        answers += [outcome for outcome in results if not isinstance(outcome, BadAnswer)]
        reviews = reviews[len(batch) :]
        say(progress(total - len(reviews), total, time.monotonic() - start))
    labels = prompts.merged_labels(answers)
    if not labels["aspects"]:
        raise Stopped("the model proposes no aspects; list some in editorial.json")
    with data.locked():
        editorial = data.sources().editorial
        proposals = prompts.proposed_vocabulary(editorial, labels)
        files.write(data.path / EDITORIAL_FILE, readable(editorial | proposals))
    say(f"{EDITORIAL_FILE} now lists aspects and topics: check them, and change what you like.")
    if "proposed_entities" in proposals:
        say("People and services are under proposed_entities. They count once you remove `proposed_` there.")


def annotate(data: DataDirectory, client: Client, reviews: Reviews, parallel: int) -> None:
    """Have the model annotate reviews; the annotations of each batch are written when its answer arrives."""
    editorial = data.sources().editorial
    keys = insights.entry_keys(editorial)
    source = {"vocabulary": insights.value_digest(keys), "model": client.model}
    count = 0
    start = last_line = time.monotonic()
    for batch, outcome in outcomes(client, prompts.annotation_prompt(editorial), reviews, parallel):
        is_failure = isinstance(outcome, BadAnswer)
        lists: Object = {batch[0]["id"]: {"failed": str(outcome)}} if is_failure else outcome
        digests = {review["id"]: {"text_digest": insights.text_digest(review)} for review in batch}
        annotations = {id: digests[id] | source | lists[id] for id in digests}
        new = {"vocabularies": {source["vocabulary"]: keys}, "reviews": annotations}
        with data.locked():
            current = data.sources()
            merged = insights.merged_annotations(current.reviews, current.annotations, new)
            files.write(data.path / ANNOTATIONS_FILE, encode(merged))
        count += len(batch)
        line = progress(count, len(reviews), time.monotonic() - start)
        if sys.stdout.isatty():
            print(f"{CLEARED_LINE}{line}", end="", flush=True)
        elif time.monotonic() > last_line + 60:
            last_line = time.monotonic()
            say(line)


def progress(count: int, total: int, seconds: float) -> str:
    """How many reviews have been read in `seconds`, how many are left, and how long these will take."""
    rate = count / max(seconds, 1) * 60
    return f"{count} read, {total - count} left, {rate:.0f} a minute, {(total - count) / rate:.0f} min left"


def propose_summary(data: DataDirectory, client: Client) -> None:
    """Have the model write a summary, a quotation and questions, as proposals in editorial.json."""
    prompt = prompts.summary_prompt()
    reviews = prompts.largest_spread(data.sources().reviews, prompts.SUMMARIZED_REVIEWS, prompt, client.model)
    results = outcomes(client, prompt, reviews, 1)
    proposals = next((outcome for _, outcome in results if not isinstance(outcome, BadAnswer)), None)
    if not proposals:
        raise Stopped("the model proposes no summary")
    with data.locked():
        files.write(data.path / EDITORIAL_FILE, readable(data.sources().editorial | proposals))
    say(f"{EDITORIAL_FILE} has {', '.join(proposals)}.")
    say("Remove `proposed_` from the keys that you want to publish.")


def count_insights(data: DataDirectory) -> None:
    """Count the insights, write the files, and report."""
    with data.locked():
        result = data.count()
        for file, content in result.contents.items():
            files.write(data.path / file, content)
    for line in result.lines:
        say(line)
    annotations = data.sources().annotations.get("reviews") or {}
    failed = [id for id, annotation in annotations.items() if annotation.get("failed")]
    if failed:
        ids = ", ".join(failed[:3]) + (", …" if len(failed) > 3 else "")
        say(f"No usable answer for {len(failed)} review(s): {ids}. --again asks for these again.")
    say("The insights are counted.")


# ---- Command line ----


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; exits with status 2 if they are wrong."""
    about = "Have a language model read the reviews, and count what they say."
    parser = argparse.ArgumentParser("reviewsd-insights", description=about)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="the directory of reviews.json")
    add("--url", required=True, help="the server, such as http://127.0.0.1:11434/v1")
    add("--model", type=name, required=True, help="the model, as the server calls it")
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
    """An integer of at least 1 with at most nine digits. Raises ValueError."""
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise ValueError
    return int(text)


def name(text: str) -> str:
    """A name, which pages show. Raises ValueError if it is empty or has control characters."""
    if not text.strip() or not text.isprintable():
        raise ValueError
    return text


def preview(sources: Sources, model: str, unread: Reviews) -> None:
    """Print the first request, and the number and total size of all requests."""
    prompt, reviews = prompts.annotation_prompt(sources.editorial), unread
    if not sources.editorial.get("aspects"):
        prompt = prompts.vocabulary_prompt({})
        reviews = prompts.spread(sources.reviews, prompts.SURVEYED_REVIEWS)
    requests = [prompt._replace(reviews=batch) for batch in prompt.batches(reviews, model)]
    for request in requests[:1]:
        print(json.dumps(request.request(model), indent=1))
    characters = sum(request.characters(model) for request in requests)
    say(f"{len(requests)} requests, {characters} characters, for {len(reviews)} reviews. Nothing was sent.")


def run(options: argparse.Namespace) -> None:
    """Carry out the command. Raises BadData, Stopped, OSError and KeyboardInterrupt."""
    data = DataDirectory(options.data)
    if EDITORIAL_FILE in data.count().contents:
        raise Stopped("insights.json was not counted; `reviewsd-import --count` turns it into editorial.json")
    sources = data.sources()
    if not options.dry_run:
        key = key_for(options.url, options.key_variable, os.environ)
        client = Client(options.url, options.model, key, options.timeout)
        if not sources.editorial.get("aspects"):
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
        print(CLEARED_LINE if sys.stdout.isatty() else "", end="")
        count_insights(data)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a closed stream is None
        sys.stdout.reconfigure(errors="backslashreplace")
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(options)
        return EXIT_SUCCESS
    except BadData as fault:
        print("\n".join(fault.lines()), file=sys.stderr)
        return EXIT_BAD_DATA
    except Stopped as reason:
        print(printable(f"Stopped: {reason}."), file=sys.stderr)
        return EXIT_FAILURE
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return EXIT_STOPPED
    except OSError as error:
        print(printable(f"{error.filename or 'the output'}: {error.strerror}"), file=sys.stderr)
        return EXIT_FAILURE


if __name__ == "__main__":
    sys.exit(main())

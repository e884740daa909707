"""`reviewsd-insights`: a language model of the owner's choice reads the reviews, and insights are counted.

Files are written under the lock of imports, and requests run on threads of their own. The daemon does not
import this module: it sees that a file changed.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from reviewslib import files
from reviewslib.annotator import prompts
from reviewslib.annotator.client import Client, Stopped, key_for
from reviewslib.annotator.prompts import BadAnswer, Prompt, Reviews
from reviewslib.dataset import counting, insights
from reviewslib.dataset.contract import BadData, Contract, printable, shipped_contract
from reviewslib.dataset.counting import (
    ANNOTATIONS_FILE,
    COUNTED_FILES,
    EDITORIAL_FILE,
    SOURCE_FILES,
    Sources,
    readable,
)
from reviewslib.dataset.strict_json import Json, Object, encode

EXIT_SUCCESS, EXIT_FAILURE, EXIT_BAD_DATA, EXIT_STOPPED = 0, 1, 78, 130  # argparse exits with 2


def say(line: str) -> None:
    """Print a line, in which characters that a terminal may obey are escaped."""
    print(printable(line), flush=True)


# ---- Data directory ----


class DataDirectory:
    """The files of `--data`; an import may change them between two calls. Raises BadData and OSError."""

    def __init__(self, path: Path, contract: Contract):
        self._path, self._contract = path, contract
        # Files that did not change since the last batch are not judged again.
        self._read = lru_cache(maxsize=4)(partial(counting.read_source, contract))

    def sources(self) -> Sources:
        """What insights are counted from."""
        contents = self._contents()
        return Sources(*(self._read(file, contents[file]) for file in SOURCE_FILES))

    def update(self, change: Callable[[Sources], Mapping[str, Json]]) -> None:
        """Write the documents that `change` gives by file name."""
        with files.locked(self._path, is_dry=False, waits=True):
            for name, document in change(self.sources()).items():
                content = encode(document) if name == ANNOTATIONS_FILE else readable(document)  # for people
                files.write(self._path / name, content)

    def check(self) -> None:
        """See whether counting is possible, before anything is asked. Raises Stopped."""
        if EDITORIAL_FILE in counting.count(self._contract, self._contents(), datetime.now(UTC)).contents:
            raise Stopped("insights.json is not ours: `reviewsd-import --count` makes editorial.json of it")

    def count(self) -> None:
        """Count the insights anew, and report."""
        with files.locked(self._path, is_dry=False, waits=True):
            result = counting.count(self._contract, self._contents(), datetime.now(UTC))
            for name, content in result.contents.items():
                files.write(self._path / name, content)
        for line in result.lines:
            say(line)

    def _contents(self) -> dict[str, bytes | None]:
        paths = [self._path / name for name in COUNTED_FILES]
        return {path.name: files.read_unchanging(path)[0] if path.exists() else None for path in paths}


# ---- Requests side by side ----


def outcomes(
    client: Client, prompt: Prompt, reviews: Reviews, parallel: int
) -> Iterator[tuple[Reviews, Any]]:
    """The reviews in batches, each with its answer, or a single one with its fault. Raises Stopped.

    A batch without a usable answer is halved. The threads are daemons: a server that hangs keeps neither
    Ctrl-C nor the end of the program waiting.
    """
    batches = deque(prompt.batches(reviews, client.model))
    done = queue.SimpleQueue[tuple[float, Reviews, Any]]()

    def run(began: float, batch: Reviews) -> None:
        try:
            done.put((began, batch, client.ask(prompt._replace(reviews=batch))))
        except Exception as error:
            done.put((began, batch, error))

    running = list[float]()  # when each request began
    while batches or running:
        while batches and len(running) < parallel:
            running.append(time.monotonic())
            threading.Thread(target=run, args=(running[-1], batches.popleft()), daemon=True).start()
        try:
            left = min(running) + client.timeout_seconds - time.monotonic()
            began, batch, outcome = done.get(timeout=max(left, 0))
        except queue.Empty:
            raise client.no_answer() from None
        running.remove(began)
        if isinstance(outcome, BadAnswer) and len(batch) > 1:
            middle = len(batch) // 2
            batches.extendleft([batch[middle:], batch[:middle]])
        elif isinstance(outcome, Exception) and not isinstance(outcome, BadAnswer):
            raise outcome
        else:
            yield batch, outcome


# ---- Tasks ----

CLEARED_LINE = "\r\x1b[K"  # on a terminal
FAILURES_IN_A_ROW = 5  # of single reviews; more than that is the fault of the server or the model


def propose_vocabulary(data: DataDirectory, client: Client) -> None:
    """Have the model propose what reviews can mention, and write it into editorial.json."""
    reviews: Reviews = prompts.spread(data.sources().reviews, prompts.SURVEYED_REVIEWS)
    say(f"{EDITORIAL_FILE} lists no aspects: {client.model} reads {len(reviews)} reviews to propose some.")
    answers = list[Json]()
    while reviews:
        prompt = prompts.vocabulary_prompt(prompts.merged_labels(answers))
        batch, *_ = prompt.batches(reviews, client.model)
        results = [outcome for _, outcome in outcomes(client, prompt, batch, 1)]
        answers += [outcome for outcome in results if not isinstance(outcome, BadAnswer)]
        reviews = reviews[len(batch) :]
    labels = prompts.merged_labels(answers)
    if not labels["aspects"]:
        raise Stopped("the model proposes no aspects; list some in editorial.json")
    data.update(
        lambda now: {EDITORIAL_FILE: now.editorial | prompts.proposed_vocabulary(now.editorial, labels)}
    )
    say(f"{EDITORIAL_FILE} lists aspects and topics now: look at them, and change what you like.")
    say("People and services stand under proposed_entities. They count once you remove `proposed_` there.")


def annotate(data: DataDirectory, client: Client, reviews: Reviews, parallel: int) -> None:
    """Have the model read reviews, and write what it says of each batch."""
    editorial = data.sources().editorial
    keys = insights.entry_keys(editorial)
    source = {"vocabulary": insights.value_digest(keys), "model": client.model}
    done = failures = 0
    began = said = time.monotonic()
    for batch, outcome in outcomes(client, prompts.annotation_prompt(editorial), reviews, parallel):
        is_failure = isinstance(outcome, BadAnswer)
        lists: Object = {batch[0]["id"]: {"failed": str(outcome)}} if is_failure else outcome
        digests = {review["id"]: {"text_digest": insights.text_digest(review)} for review in batch}
        new = {id: digests[id] | source | lists[id] for id in digests}
        data.update(
            partial(_with_annotations, {"vocabularies": {source["vocabulary"]: keys}, "reviews": new})
        )
        done, failures, now = done + len(batch), failures + 1 if is_failure else 0, time.monotonic()
        line = progress(done, len(reviews), now - began)
        if sys.stdout.isatty():
            print(f"{CLEARED_LINE}{line}", end="", flush=True)
        elif now > said + 60:
            said = now
            say(line)
        if failures == FAILURES_IN_A_ROW:
            raise Stopped(f"{failures} reviews in a row got no usable answer; of the last: {outcome}")


def _with_annotations(new: Object, now: Sources) -> dict[str, Json]:
    return {ANNOTATIONS_FILE: insights.merged_annotations(now.reviews, now.annotations, new)}


def _with_keys(proposals: Object, now: Sources) -> dict[str, Json]:
    return {EDITORIAL_FILE: {**now.editorial, **proposals}}


def progress(done: int, total: int, seconds: float) -> str:
    """How far the reading is."""
    rate = done / max(seconds, 1) * 60
    return f"{done} read, {total - done} left, {rate:.0f} a minute, {(total - done) / rate:.0f} min left"


def propose_summary(data: DataDirectory, client: Client) -> None:
    """Have the model write a summary, a quotation and questions, as proposals in editorial.json."""
    prompt, reviews = prompts.summary_prompt(), data.sources().reviews
    batch, *_ = [*prompt.batches(prompts.spread(reviews, prompts.SUMMARIZED_REVIEWS), client.model), ()]
    for _, outcome in outcomes(client, prompt, batch, 1):
        if not isinstance(outcome, BadAnswer):
            data.update(partial(_with_keys, outcome))
            say(f"{EDITORIAL_FILE} has {', '.join(outcome) or 'no proposals'}.")
            say("Remove `proposed_` from the keys that you want to publish.")
            return
    raise Stopped("the model gives no summary")


# ---- Command line ----


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; exits with status 2 where they are wrong."""
    about = "Have a language model read the reviews, and count what they say."
    parser = argparse.ArgumentParser("reviewsd-insights", description=about)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="the directory of reviews.json")
    add("--url", required=True, help="the server, such as http://127.0.0.1:11434/v1")
    add("--model", required=True, help="the model, as the server calls it")
    add("--key-variable", default="", metavar="NAME", help="environment variable that holds the server's key")
    add("--parallel", type=positive, default=2, help="requests at once (default: 2)")
    add(
        "--timeout", type=positive, default=600, help="seconds for an answer, with all waiting (default: 600)"
    )
    add("--limit", type=positive, help="read at most so many reviews this time")
    add("--yes", action="store_true", help="go on with the aspects and topics that the model proposes")
    add("--again", action="store_true", help="also read reviews that failed before")
    add("--summary", action="store_true", help="propose a summary, a quotation and questions as well")
    add("--dry-run", action="store_true", help="print the first request and what it would take; send nothing")
    return parser.parse_args(arguments)


def positive(text: str) -> int:
    """A whole number from 1 on. Raises ValueError."""
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise ValueError
    return int(text)


def preview(sources: Sources, model: str, unread: Reviews) -> None:
    """Print the first request, and how many requests and characters there would be."""
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
    """Do what the command says. Raises BadData, Stopped, OSError and KeyboardInterrupt."""
    data = DataDirectory(options.data, shipped_contract())
    sources = data.sources()
    data.check()
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
        data.count()
        now = data.sources()
        failed = [id for id, said in (now.annotations.get("reviews") or {}).items() if said.get("failed")]
        if failed:
            named = ", ".join(failed[:3]) + (", …" if len(failed) > 3 else "")
            say(f"No usable answer for {len(failed)} review(s): {named}. --again asks for these again.")
        say("The insights are counted.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
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

"""HTTP client of a language model: sends prompts, several at once, and judges answers.

The protocol is `POST {base}/chat/completions`, as OpenAI, Ollama, llama.cpp,
LM Studio and vLLM speak it. The client follows no redirect, and no message of
this module contains the key. Of files it reads that of the key alone.

Sections: the server - what a status means - one request - many requests.
"""

from __future__ import annotations

import os
import re
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

from reviewslib import files
from reviewslib.annotator.prompts import BadAnswer, Prompt, excerpt
from reviewslib.dataset.figures import ReviewObjects
from reviewslib.dataset.strict_json import Json, encode
from reviewslib.terminal import CommandFailed

# A batch and its parsed answer; or a batch that cannot be halved, mostly one review,
# and the reason why it has no answer.
BatchOutcome = tuple[ReviewObjects, Json | BadAnswer]

# ---- The server ----

# Plain HTTP is for this machine alone: reviews are public, but a key is not.
HOST = r"[a-z0-9.-]+|\[[0-9a-f:]+\]"
THIS_MACHINE = r"localhost|127\.0\.0\.1|\[::1\]"
BASE_URL = re.compile(
    rf"(https://({HOST})|http://({THIS_MACHINE}))(:[0-9]+)?(/[a-z0-9._~/-]*)?"
)
# The one host whose key has a name that everybody uses.
OPENAI_HOST = "api.openai.com"
OPENAI_KEY = "OPENAI_API_KEY"

# A director without handlers of redirects (which would carry the key elsewhere),
# of proxies, and of error statuses (which are read like any other).
OPENER = urllib.request.OpenerDirector()
OPENER.add_handler(urllib.request.HTTPHandler())
OPENER.add_handler(urllib.request.HTTPSHandler())

# An answer without an end must not fill the memory. What is cut here is no JSON,
# and so an unusable answer. The largest useful one has some 20 KB.
MAX_COMPLETION_BYTES = 4 * 1024 * 1024

# ---- What a status means ----

# After these a smaller request may succeed: too long, or too hard for the model.
SMALLER = {400, 413, 422, 500}
# After these the same request may succeed later. 503: the model may be loading.
LATER = {408, 429, 502, 503, 504, 529}
# Every other status ends the command, with these words before those of the server.
REFUSED_KEY = "the key is refused (--key-variable or --key-file names it)"
USED_UP = "the quota or credit is used up"
STOPPING = {
    401: REFUSED_KEY,
    402: USED_UP,
    403: REFUSED_KEY,
    404: "--model or --url is wrong",
    429: USED_UP,
}
# OpenAI answers 429 both to haste and to an empty account; only the code tells.
NO_CREDIT = b"insufficient_quota"

# Before a request is repeated, unless the server asks for more.
RETRY_PAUSE_SECONDS = 5
# A Retry-After of more digits than this is beyond any timeout.
RETRY_AFTER_DIGITS = 9

# Newer models of OpenAI refuse max_tokens and name what they want instead.
OTHER_LIMIT_KEY = re.compile(rb"\bmax_(?!tokens)\w*tokens\b")

# Between two looks at the clock while no answer comes: a minute's line is on time.
WAKE_SECONDS = 1

# After so many single reviews the fault is that of the server or the model, not of
# a review.
FAILURES_IN_A_ROW = 5


def _given_pause(retry_after: str) -> int:
    """The seconds of a Retry-After field; 0 for none, or for a date."""
    if not retry_after.isdecimal():
        return 0
    return int(retry_after[:RETRY_AFTER_DIGITS])


def _refusal(status: int, body: bytes) -> str:
    """Why the command ends with a status."""
    said = excerpt(body)
    if status in STOPPING:
        said = f"{STOPPING[status]}: {said}"
    return f"the server answers with status {status}: {said}"


# ---- One request ----


@dataclass
class ModelClient:
    """One model at one server.

    Raises CommandFailed unless the URL is https or on this machine, and where the
    file or environment variable of the key holds none.
    """

    base: str  # the URL before /chat/completions
    model: str
    timeout: float  # seconds for an answer and its retries
    key_variable: str = ""  # "": OPENAI_API_KEY at OpenAI's host, elsewhere no key
    key_file: Path | None = None  # used instead of the variable
    sleep: Callable[[float], None] = time.sleep
    _limit_key: str = "max_tokens"

    def __post_init__(self) -> None:
        url = BASE_URL.fullmatch(self.base.lower())
        if not url:
            raise CommandFailed(
                f"--url {self.base}: expected https://HOST/v1,"
                " or http://127.0.0.1:PORT/v1 on this machine"
            )
        self.key = ""
        name = self.key_variable
        if not name and url[2] == OPENAI_HOST:
            name = OPENAI_KEY
        if self.key_file:
            # latin-1: every byte is a character, and those of no key are refused below.
            text = files.read_unchanging(self.key_file)[0].decode("latin-1")
            self.key = _key_in(text, f"the file {self.key_file}")
        elif name:
            text = os.environ.get(name, "")
            self.key = _key_in(text, f"the environment variable {name}")

    def outcomes(
        self,
        prompt: Prompt,
        reviews: ReviewObjects,
        parallel: int,
        waiting: Callable[[], None],
    ) -> Iterator[BatchOutcome]:
        """Ask the model about all reviews; a batch without a usable answer is halved.

        While no answer comes, `waiting` is called from time to time. Raises
        CommandFailed, also if an answer takes longer than the timeout.
        """
        requests = _Requests(self, prompt, parallel, waiting)
        requests.waiting.extend(prompt.batches(reviews, self.model))
        failures_in_a_row = 0
        while requests.are_left():
            batch, answer = requests.next_answer()
            if not isinstance(answer, BadAnswer):
                failures_in_a_row = 0
                yield batch, answer
            elif not requests.halve(batch):
                failures_in_a_row += 1
                yield batch, answer
            if failures_in_a_row == FAILURES_IN_A_ROW:
                raise CommandFailed(
                    f"{failures_in_a_row} reviews in a row got no usable answer;"
                    f" of the last: {answer}",
                    "Turn the model's reasoning off at the server, or choose another"
                    " model, and give the same command again with --again.",
                )

    def ask(self, prompt: Prompt, batch: ReviewObjects) -> Json:
        """The parsed answer to a prompt.

        Raises CommandFailed; BadAnswer if a smaller request may succeed.
        """
        while True:
            request = prompt.request(batch, self.model, self._limit_key)
            status, body, retry_after = self._exchange(encode(request))
            if status == 200:
                return prompt.answer(batch, body)
            other_key = OTHER_LIMIT_KEY.search(body)
            if status == 400 and other_key and "max_tokens" in request:
                self._limit_key = other_key[0].decode()
                continue
            if status in SMALLER:
                raise BadAnswer(f"status {status}: {excerpt(body)}")
            pause = max(_given_pause(retry_after), RETRY_PAUSE_SECONDS)
            is_worth_waiting = pause < self.timeout and NO_CREDIT not in body
            if status not in LATER or not is_worth_waiting:
                raise CommandFailed(_refusal(status, body))
            self.sleep(pause)

    def _exchange(self, body: bytes) -> tuple[int, bytes, str]:
        """Status, body and Retry-After of the response to a request.

        Raises CommandFailed, and BadAnswer for half an answer: a server that ran
        out of memory over this request may answer a smaller one.
        """
        url = f"{self.base.rstrip('/')}/chat/completions"
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "reviewsd-insights",
        }
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        # BASE_URL allows http and https only.
        request = urllib.request.Request(url, body, headers)  # noqa: S310
        try:
            with OPENER.open(request) as response:
                answer: bytes = response.read(MAX_COMPLETION_BYTES)
        except (urllib.error.URLError, ValueError) as error:
            # ValueError: a host that is no name.
            reason = getattr(error, "reason", error)
            raise CommandFailed(f"no server answers at {url}: {reason}") from None
        except (OSError, HTTPException):
            raise BadAnswer(
                "the server closed the connection before its answer was complete"
            ) from None
        if self.key:
            # Some servers repeat the key in error messages.
            answer = answer.replace(self.key.encode(), b"[key]")
        return response.status, answer, response.headers.get("Retry-After", "")


def _key_in(text: str, place: str) -> str:
    """The key in a text; it is sent as part of a header field."""
    key = text.strip()
    if not re.fullmatch("[!-~]+", key):
        raise CommandFailed(f"{place} contains no key")
    return key


# ---- Many requests ----


@dataclass
class _Requests:
    """The batches of one prompt that wait, and those that are being asked.

    The caller's thread alone reads and changes it; a thread for each request adds
    to `answers`.
    """

    client: ModelClient
    prompt: Prompt
    parallel: int
    while_waiting: Callable[[], None]
    waiting: deque[ReviewObjects] = field(default_factory=deque)
    # By id of the first review of a batch: when its answer is too late, as
    # `time.monotonic` counts.
    deadlines: dict[str, float] = field(default_factory=dict)
    answers: Queue[tuple[ReviewObjects, Json | Exception]] = field(
        default_factory=Queue
    )

    def are_left(self) -> bool:
        return bool(self.waiting or self.deadlines)

    def halve(self, batch: ReviewObjects) -> bool:
        """Ask about both halves of a batch, before whatever waits already.

        Returns whether the batch can be halved.
        """
        halves = self.prompt.halves(batch)
        self.waiting.extendleft(reversed(halves))
        return bool(halves)

    def next_answer(self) -> tuple[ReviewObjects, Json | BadAnswer]:
        """The next batch that is answered. Raises what its request raised."""
        while self.waiting and len(self.deadlines) < self.parallel:
            self._begin(self.waiting.popleft())
        batch, answer = self._waited_for()
        del self.deadlines[batch[0]["id"]]
        if isinstance(answer, Exception) and not isinstance(answer, BadAnswer):
            raise answer
        return batch, answer

    def _waited_for(self) -> tuple[ReviewObjects, Json | Exception]:
        """The next answer, whatever it is. Raises CommandFailed if it is too late."""
        while True:
            left = min(self.deadlines.values()) - time.monotonic()
            try:
                return self.answers.get(timeout=min(max(0, left), WAKE_SECONDS))
            except Empty:
                if left <= 0:
                    raise CommandFailed(
                        f"no answer within {self.client.timeout} s;"
                        " raise --timeout if the server is slow"
                    ) from None
                self.while_waiting()

    def _begin(self, batch: ReviewObjects) -> None:
        self.deadlines[batch[0]["id"]] = time.monotonic() + self.client.timeout
        # A daemon, so that a hanging server delays neither Ctrl-C nor the exit.
        Thread(target=self._ask, args=(batch,), daemon=True).start()

    def _ask(self, batch: ReviewObjects) -> None:
        answer: Json | Exception
        try:
            answer = self.client.ask(self.prompt, batch)
        except Exception as error:
            # The caller's thread raises it: here nobody would see it.
            answer = error
        self.answers.put((batch, answer))

"""HTTP client of a language model: sends prompts, several at once, and classifies errors.

The protocol is `POST {base}/chat/completions`, as OpenAI, Ollama, llama.cpp, LM Studio and vLLM speak it. The
client follows no redirect, and no message of this module contains the key. It knows nothing of files.
"""

from __future__ import annotations

import os
import re
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from queue import Empty, Queue
from threading import Thread

from reviewslib.annotator.prompts import BadAnswer, Prompt, Reviews, excerpt
from reviewslib.dataset.strict_json import Json, encode
from reviewslib.terminal import CommandFailed

Outcome = tuple[
    Reviews, Json | BadAnswer
]  # a batch and its parsed answer; or one review and the reason

HOST = r"[a-z0-9.-]+|\[[0-9a-f:]+\]"
THIS_MACHINE = r"localhost|127\.0\.0\.1|\[::1\]"
BASE_URL = re.compile(
    rf"(https://({HOST})|http://({THIS_MACHINE}))(:[0-9]+)?(/[a-z0-9._~/-]*)?"
)
OPENAI_HOST = "api.openai.com"
OPENAI_KEY = "OPENAI_API_KEY"
MAX_ANSWER_BYTES = 4 * 1024 * 1024  # a longer answer is cut and therefore unusable
FAILURES_IN_A_ROW = 5  # of single reviews; then the fault is that of the server or the model, not of a review
OTHER_LIMIT_KEY = re.compile(
    rb"\bmax_(?!tokens)\w*tokens\b"
)  # what some servers call max_tokens

# By status: after SMALLER, a smaller request may succeed; after LATER, the same one. Any other error stops.
# 503: the model may be loading
SMALLER = {400, 413, 422, 500}
LATER = {408, 429, 502, 503, 504, 529}
PAUSE_SECONDS = 5  # before a request is repeated, unless the server asks for more
REFUSED_KEY = "the key is refused (--key-variable names it)"
USED_UP = "the quota or credit is used up"
STOPPING = {
    401: REFUSED_KEY,
    402: USED_UP,
    403: REFUSED_KEY,
    404: "--model or --url is wrong",
    429: USED_UP,
}

OPENER = (
    urllib.request.OpenerDirector()
)  # has no handlers of redirects, proxies and errors
OPENER.add_handler(urllib.request.HTTPHandler())
OPENER.add_handler(urllib.request.HTTPSHandler())


@dataclass
class Client:
    """One model at one server. Raises CommandFailed unless the URL is https or on this machine."""

    base: str  # the URL before /chat/completions
    model: str
    timeout: float  # seconds for an answer and its retries
    key_variable: str = ""  # the environment variable of the key; OPENAI_API_KEY goes to OpenAI's host only
    sleep: Callable[[float], None] = time.sleep
    _limit_key: str = "max_tokens"

    def __post_init__(self) -> None:
        if not (url := BASE_URL.fullmatch(self.base.lower())):
            expected = (
                "expected https://HOST/v1, or http://127.0.0.1:PORT/v1 on this machine"
            )
            raise CommandFailed(f"--url {self.base}: {expected}")
        name = self.key_variable or (OPENAI_KEY if url[2] == OPENAI_HOST else "")
        self.key = os.environ.get(name, "").strip()
        if name and not re.fullmatch("[!-~]+", self.key):
            raise CommandFailed(f"the environment variable {name} contains no key")

    def outcomes(
        self, prompt: Prompt, reviews: Reviews, parallel: int
    ) -> Iterator[Outcome]:
        """Ask the model about all reviews; a batch without a usable answer is halved.

        Raises CommandFailed, also if an answer takes longer than the timeout.
        """
        waiting = deque(prompt.batches(reviews, self.model))
        deadlines = dict[str, float]()
        answers = Queue[tuple[Reviews, Json | Exception]]()
        failures = 0

        def work(batch: Reviews) -> None:
            try:
                answers.put((batch, self.ask(prompt, batch)))
            except Exception as error:
                answers.put((batch, error))

        while waiting or deadlines:
            while waiting and len(deadlines) < parallel:
                deadlines[waiting[0][0]["id"]] = time.monotonic() + self.timeout
                # The thread is a daemon, so that a hanging server delays neither Ctrl-C nor the exit.
                Thread(target=work, args=(waiting.popleft(),), daemon=True).start()
            try:
                batch, answer = answers.get(
                    timeout=max(0, min(deadlines.values()) - time.monotonic())
                )
            except Empty:
                hint = "raise --timeout if the server is slow"
                raise CommandFailed(
                    f"no answer within {self.timeout} s; {hint}"
                ) from None
            del deadlines[batch[0]["id"]]
            is_bad = isinstance(answer, BadAnswer)
            middle = len(batch) // 2
            if isinstance(answer, Exception) and not is_bad:
                raise answer
            if is_bad and middle:
                waiting.extendleft([batch[middle:], batch[:middle]])
                continue
            yield batch, answer
            failures = failures + 1 if is_bad else 0
            if failures == FAILURES_IN_A_ROW:
                raise CommandFailed(
                    f"{failures} reviews in a row got no usable answer; of the last: {answer}"
                )

    def ask(self, prompt: Prompt, batch: Reviews) -> Json:
        """The parsed answer to a prompt. Raises CommandFailed; BadAnswer if a smaller request may succeed."""
        while True:
            request = prompt.request(batch, self.model, self._limit_key)
            status, body, retry_after = self._exchange(encode(request))
            if status == 200:
                return prompt.answer(batch, body)
            other_key = OTHER_LIMIT_KEY.search(body)
            given = (
                int(retry_after[:9]) if retry_after.isdecimal() else 0
            )  # it may be a date
            pause = max(given, PAUSE_SECONDS)
            if status == 400 and other_key and "max_tokens" in request:
                self._limit_key = other_key[0].decode()
            elif status in SMALLER:
                raise BadAnswer(f"status {status}: {excerpt(body)}")
            elif (
                status in LATER
                and pause < self.timeout
                and b"insufficient_quota" not in body
            ):
                self.sleep(pause)
            else:
                reason = f"{STOPPING[status]}: " if status in STOPPING else ""
                raise CommandFailed(
                    f"the server answers with status {status}: {reason}{excerpt(body)}"
                )

    def _exchange(self, body: bytes) -> tuple[int, bytes, str]:
        """Status, body and Retry-After of the response to a request. Raises CommandFailed and BadAnswer."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "reviewsd-insights",
        }
        headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        url = f"{self.base.rstrip('/')}/chat/completions"
        request = urllib.request.Request(url, body, headers)  # noqa: S310 - BASE_URL allows http and https only
        try:
            with OPENER.open(request) as response:
                answer: bytes = response.read(MAX_ANSWER_BYTES)
        except (
            urllib.error.URLError,
            ValueError,
        ) as error:  # ValueError: a host that is no name
            raise CommandFailed(
                f"no server answers at {url}: {getattr(error, 'reason', error)}"
            ) from None
        except (OSError, HTTPException):
            raise BadAnswer(
                "the server closed the connection before its answer was complete"
            ) from None
        if self.key:  # some servers repeat it in error messages
            answer = answer.replace(self.key.encode(), b"[key]")
        return response.status, answer, response.headers.get("Retry-After", "")

"""HTTP client of a language model: sends prompts, several at once, and classifies errors.

The protocol is `POST {base}/chat/completions`, as OpenAI, Ollama, llama.cpp, LM Studio and vLLM speak it. The
client follows no redirect, and no message of this module contains the key. It knows nothing of files.
"""

from __future__ import annotations

import http.client
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from reviewslib.annotator.prompts import BadAnswer, Prompt, Reviews, excerpt
from reviewslib.dataset.strict_json import Json, encode

Outcomes = Iterator[tuple[Reviews, Json]]  # see `Client.outcomes`


class Stopped(Exception):
    """The command cannot continue; the text gives the reason."""


# ---- Responses ----

UNUSABLE = {400, 413, 422, 500}  # a smaller request may succeed
BUSY = {408, 429, 502, 503, 504, 529}  # 503 may mean that the model is loading
LONGEST_PAUSE_SECONDS = 60  # if a busy server sends no Retry-After
OTHER_LIMIT_KEY = re.compile(rb"\bmax_(?!tokens)\w*tokens\b")  # what some servers call max_tokens
REFUSED_KEY = "the server refuses the key; name its environment variable with --key-variable"
NO_CREDIT = "the quota or credit at the server is used up"
STOPPING = {401: REFUSED_KEY, 403: REFUSED_KEY, 402: NO_CREDIT}


def pause_seconds(status: int, headers: Mapping[str, str], body: bytes, attempt: int) -> float:
    """The pause before a retry. Raises BadAnswer if a smaller request may succeed, Stopped if none can."""
    if status in UNUSABLE:
        raise BadAnswer(f"status {status}: {excerpt(body)}")
    if status in STOPPING or b"insufficient_quota" in body:
        raise Stopped(STOPPING.get(status, NO_CREDIT))
    if status not in BUSY:
        reason = f"redirects to {headers['Location']}" if "Location" in headers else excerpt(body)
        raise Stopped(f"the server answers with status {status}: {reason}")
    retry_after = headers.get("Retry-After", "")
    is_number = re.fullmatch("[0-9]{1,9}", retry_after)  # it may be a date
    return max(1, int(retry_after)) if is_number else min(LONGEST_PAUSE_SECONDS, 2**attempt)


# ---- Client ----

BASE_URL = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]+)?(/[a-z0-9._~/-]*)?")
THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")
OPENAI_HOST, OPENAI_KEY = "api.openai.com", "OPENAI_API_KEY"
LARGEST_ANSWER_BYTES = 4 * 1024 * 1024
FAILURES_IN_A_ROW = 5  # of single reviews; then the fault is that of the server or the model, not of a review


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Returns responses of every status: urllib neither raises HTTPError nor follows redirects."""

    def http_response(self, request: urllib.request.Request, response: Json) -> Json:
        return response

    https_response = http_response


@dataclass
class Client:
    """One model at one server. Raises Stopped unless the URL is https or on this machine."""

    base: str  # the URL before /chat/completions
    model: str
    timeout: int  # seconds for an answer and its retries
    key_variable: str = ""  # the environment variable of the key
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        """Check the URL and find the key: without `key_variable` OPENAI_API_KEY, for OpenAI's host only."""
        url = BASE_URL.fullmatch(self.base.lower())
        if not url or (url[1] == "http" and url[2] not in THIS_MACHINE):
            expected = "expected https://HOST/v1, or http://127.0.0.1:PORT/v1 on this machine"
            raise Stopped(f"--url {self.base}: {expected}")
        name = self.key_variable or (OPENAI_KEY if url[2] == OPENAI_HOST else "")
        self.key = self.environment.get(name, "").strip()
        if name and not re.fullmatch("[!-~]+", self.key):
            raise Stopped(f"the environment variable {name} contains no key")
        no_proxy = [urllib.request.ProxyHandler({})] if url[2] in THIS_MACHINE else []
        self._opener = urllib.request.build_opener(_AnyStatus, *no_proxy)
        self._url, self._limit_key = f"{self.base.rstrip('/')}/chat/completions", "max_tokens"

    def outcomes(self, prompt: Prompt, reviews: Reviews, parallel: int) -> Outcomes:
        """Pairs: a batch of reviews and its parsed answer, or a single review and its BadAnswer.

        A batch without a usable answer is halved. Raises Stopped, also if an answer takes longer than the
        timeout.
        """
        batches, failures = deque(prompt.batches(reviews, self.model)), 0
        asked = dict[Future[Json], tuple[Reviews, float]]()  # with the deadline of the answer
        while batches or asked:
            while batches and len(asked) < parallel:
                batch = batches.popleft()
                asked[self._started(prompt, batch)] = batch, self.clock() + self.timeout
            _, earliest = next(iter(asked.values()))
            answered, _ = wait(asked, max(0, earliest - self.clock()), FIRST_COMPLETED)
            if not answered:
                raise Stopped(f"no answer within {self.timeout} s; raise --timeout if the server is slow")
            for future in sorted(answered, key=lambda future: isinstance(future.exception(), Stopped)):
                (batch, _), error = asked.pop(future), future.exception()
                if error and not isinstance(error, BadAnswer):
                    raise error
                if error and len(batch) > 1:
                    middle = len(batch) // 2
                    batches.extendleft([batch[middle:], batch[:middle]])
                    continue
                yield batch, error or future.result()
                failures = failures + 1 if error else 0
                if failures == FAILURES_IN_A_ROW:
                    raise Stopped(f"{failures} reviews in a row got no usable answer; of the last: {error}")

    def _started(self, prompt: Prompt, batch: Reviews) -> Future[Json]:
        """Ask on a daemon thread, so that a hanging server delays neither Ctrl-C nor the exit."""
        future = Future[Json]()

        def run() -> None:
            try:
                future.set_result(self.ask(prompt, batch))
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def ask(self, prompt: Prompt, batch: Reviews) -> Json:
        """The parsed answer to a prompt. Raises Stopped, and BadAnswer if a smaller request may succeed."""
        attempt = 0
        while True:
            request = prompt.request(batch, self.model, self._limit_key)
            status, headers, body = self._exchange(encode(request))
            if status == 200:
                return prompt.answer(batch, body)
            other_key = OTHER_LIMIT_KEY.search(body)
            if status == 400 and other_key and "max_tokens" in request:
                self._limit_key = other_key[0].decode()
                continue
            pause = pause_seconds(status, headers, body, attempt)
            if pause >= self.timeout:
                raise Stopped(f"the server is busy (status {status}) for {pause} s more")
            self.sleep(pause)
            attempt += 1

    def _exchange(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request. Returns status, headers and body of the response. Raises Stopped and BadAnswer."""
        headers = {"Content-Type": "application/json", "User-Agent": "reviewsd-insights"}
        headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310 - BASE_URL allows http and https only
        try:
            with self._opener.open(request) as response:
                answer: bytes = response.read(LARGEST_ANSWER_BYTES)
        except (urllib.error.URLError, ValueError) as error:  # ValueError: a host that is no name
            raise Stopped(f"no server answers at {self._url}: {getattr(error, 'reason', error)}") from None
        except (OSError, http.client.HTTPException):
            raise BadAnswer("the server closed the connection before its answer was complete") from None
        if self.key:  # some servers repeat it in error messages
            answer = answer.replace(self.key.encode(), b"[key]")
        return response.status, response.headers, answer

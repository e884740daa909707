"""HTTP client of a language model: sends prompts, retries while the server is busy, and classifies errors.

The protocol is `POST {base}/chat/completions`, as OpenAI, Ollama, llama.cpp, LM Studio and vLLM speak it. The
client follows no redirect, and no message of this module contains the key. It knows nothing of files.
"""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping

from reviewslib.annotator.prompts import BadAnswer, Prompt, Reviews, error_message
from reviewslib.dataset.strict_json import Json, encode

LARGEST_ANSWER_BYTES = 4 * 1024 * 1024


class Stopped(Exception):
    """The command cannot continue; the text gives the reason."""


# ---- Address and key ----

BASE_URL = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]+)?(/[a-z0-9._~/-]*)?")
THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")
OPENAI_HOST, OPENAI_KEY = "api.openai.com", "OPENAI_API_KEY"


def host_of(base: str) -> str:
    """The host of the URL of a server. Raises Stopped unless it is https or on this machine."""
    url = BASE_URL.fullmatch(base.lower())
    if not url or (url[1] == "http" and url[2] not in THIS_MACHINE):
        raise Stopped(f"--url {base}: expected https://HOST/v1, or http://127.0.0.1:PORT/v1 on this machine")
    return url[2]


def key_for(base: str, variable: str, environment: Mapping[str, str]) -> str:
    """The key for the server at `base`, empty if it needs none. Raises Stopped if the variable has no key.

    `variable` is the name of an environment variable; if empty, OPENAI_API_KEY, for OpenAI's host only.
    """
    name = variable or (OPENAI_KEY if host_of(base) == OPENAI_HOST else "")
    key = environment.get(name, "").strip()
    if name and not re.fullmatch("[!-~]+", key):
        raise Stopped(f"the environment variable {name} contains no key")
    return key


# ---- Error responses ----

REFUSED_KEY = "the server refuses the key; name its environment variable with --key-variable"
NO_CREDIT = "the quota or credit at the server is used up"
STOPPING = {401: REFUSED_KEY, 403: REFUSED_KEY, 402: NO_CREDIT}
UNUSABLE = {400, 413, 422, 500}  # a smaller request may succeed
BUSY = {408, 429, 502, 503, 504, 529}  # 503 may mean that the model is loading
LONGEST_PAUSE_SECONDS = 60  # if a busy server sends no Retry-After


def pause_seconds(status: int, headers: Mapping[str, str], body: bytes, attempt: int) -> float:
    """The pause before a retry. Raises BadAnswer if a smaller request may succeed, Stopped if none can."""
    if status in UNUSABLE:
        raise BadAnswer(f"status {status}: {error_message(body)}")
    if status in STOPPING or b"insufficient_quota" in body:
        raise Stopped(STOPPING.get(status, NO_CREDIT))
    if status not in BUSY:
        reason = f"redirects to {headers['Location']}" if "Location" in headers else error_message(body)
        raise Stopped(f"the server answers with status {status}: {reason}")
    retry_after = headers.get("Retry-After", "")
    is_number = re.fullmatch("[0-9]{1,9}", retry_after)  # it may be a date
    return max(1, int(retry_after)) if is_number else min(LONGEST_PAUSE_SECONDS, 2**attempt)


# ---- Client ----


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Returns responses of every status: urllib neither raises HTTPError nor follows redirects."""

    def http_response(self, request: urllib.request.Request, response: Json) -> Json:
        return response

    https_response = http_response


class Client:
    """Sends prompts to one model at one server; safe to use from several threads."""

    def __init__(
        self, base: str, model: str, key: str, timeout: int, sleep: Callable[[float], None] = time.sleep
    ):
        """`timeout` is in seconds: `ask` refuses longer pauses, callers wait no longer. Raises Stopped."""
        self.model, self.timeout, self._key, self._sleep = model, timeout, key, sleep
        no_proxy = [urllib.request.ProxyHandler({})] if host_of(base) in THIS_MACHINE else []
        self._opener = urllib.request.build_opener(_AnyStatus, *no_proxy)
        self._url, self._limit_key = f"{base.rstrip('/')}/chat/completions", "max_tokens"

    def ask(self, prompt: Prompt, reviews: Reviews) -> Json:
        """The parsed answer to a prompt. Raises Stopped, and BadAnswer if a smaller request may succeed."""
        attempt = 0
        while True:
            request = prompt.request(reviews, self.model, self._limit_key)
            status, headers, body = self._exchange(encode(request))
            if status == 200:
                return prompt.answer(reviews, body)
            other_key = re.search(r"\bmax_(?!tokens)\w*tokens\b", error_message(body))
            if status == 400 and other_key and "max_tokens" in request:
                self._limit_key = other_key[0]
                continue
            pause = pause_seconds(status, headers, body, attempt)
            if pause >= self.timeout:
                raise Stopped(f"the server is busy (status {status}) for {pause} s more")
            self._sleep(pause)
            attempt += 1

    def _exchange(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request. Returns status, headers and body of the response. Raises Stopped and BadAnswer."""
        headers = {"Content-Type": "application/json", "User-Agent": "reviewsd-insights"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310 - see `host_of`
        try:
            with self._opener.open(request) as response:
                answer: bytes = response.read(LARGEST_ANSWER_BYTES)
        except (urllib.error.URLError, ValueError) as error:  # ValueError: a host that is no name
            raise Stopped(f"no server answers at {self._url}: {getattr(error, 'reason', error)}") from None
        except (OSError, http.client.HTTPException):
            raise BadAnswer("the server closed the connection before its answer was complete") from None
        if self._key:  # some servers repeat it in error messages
            answer = answer.replace(self._key.encode(), b"[key]")
        return response.status, response.headers, answer

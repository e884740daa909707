"""HTTP client of a language model: sends prompts, retries while the server is busy, and classifies errors.

The protocol is `POST {base}/chat/completions`, as OpenAI, Ollama, llama.cpp, LM Studio and vLLM speak it. The
client follows no redirect, and no message of this module contains the key. It knows nothing of files.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from reviewslib.annotator.prompts import BadAnswer, Prompt, error_message
from reviewslib.dataset.strict_json import Json, encode

OPENAI_HOST, OPENAI_KEY = "api.openai.com", "OPENAI_API_KEY"
LARGEST_ANSWER_BYTES = 4 * 1024 * 1024
SHORTEST_PAUSE_SECONDS = 1.0  # a Retry-After may be 0, or a date in the past
LONGEST_PAUSE_SECONDS = 60.0  # if a busy server sends no Retry-After
Sleep = Callable[[float], None]


class Stopped(Exception):
    """The command cannot continue; the text gives the reason."""


# ---- Address and key ----


def is_this_machine(host: str) -> bool:
    """Whether requests to the host stay on this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def request_url(base: str) -> str:
    """The URL of the requests to a server. Raises Stopped unless it is https or on this machine."""
    with suppress(ValueError):
        url = urlsplit(base)
        is_secure = url.scheme == "https" or (url.scheme == "http" and is_this_machine(url.hostname or ""))
        if is_secure and url.hostname and url.port != 0 and not (url.username or url.query or url.fragment):
            return f"{base.rstrip('/')}/chat/completions"
    raise Stopped(f"--url {base}: expected https://HOST/v1, or http://127.0.0.1:PORT/v1 on this machine")


def key_for(base: str, variable: str, environment: Mapping[str, str]) -> str:
    """The key for the server at `base`, empty if it needs none. Raises Stopped if the variable has no key.

    `variable` is the name of an environment variable; if empty, OPENAI_API_KEY, for OpenAI's host only.
    """
    name = variable or (OPENAI_KEY if urlsplit(base).hostname == OPENAI_HOST else "")
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
    if re.fullmatch("[0-9]{1,9}", retry_after):
        return float(retry_after)
    with suppress(ValueError, TypeError, OverflowError):  # no date, no zone, or a year of many digits
        return (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
    return min(LONGEST_PAUSE_SECONDS, 2.0**attempt)


# ---- Client ----


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Returns responses of every status: urllib neither raises HTTPError nor follows redirects."""

    def http_response(self, request: urllib.request.Request, response: Json) -> Json:
        return response

    https_response = http_response


class Client:
    """Sends prompts to one model at one server; safe to use from several threads."""

    def __init__(self, base: str, model: str, key: str, timeout: float, sleep: Sleep = time.sleep):
        """`timeout` is in seconds and bounds one answer, retries and pauses included. Raises Stopped."""
        self.model, self._key, self.timeout = model, key, timeout
        self.timeout_message = f"no answer within {timeout:g} s; raise --timeout if the server is slow"
        self._url, self._sleep = request_url(base), sleep
        self._headers = {"Content-Type": "application/json", "User-Agent": "reviewsd-insights"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        is_local = is_this_machine(urlsplit(base).hostname or "")
        no_proxy = [urllib.request.ProxyHandler({})] if is_local else []
        self._opener = urllib.request.build_opener(_AnyStatus, *no_proxy)
        self._limit_key = "max_tokens"

    def ask(self, prompt: Prompt) -> Json:
        """The parsed answer to a prompt. Raises Stopped, and BadAnswer if a smaller request may succeed."""
        deadline = time.monotonic() + self.timeout
        attempt = 0
        while True:
            limit_key = self._limit_key
            body = encode(prompt.request(self.model, limit_key))
            status, headers, answer = self._exchange(body, deadline - time.monotonic())
            if status == 200:
                return prompt.answer(answer)
            other_key = re.search(r"\bmax_(?!tokens)\w*tokens\b", error_message(answer))
            if status == 400 and other_key and limit_key == "max_tokens":
                self._limit_key = other_key[0]
                continue
            pause = max(SHORTEST_PAUSE_SECONDS, pause_seconds(status, headers, answer, attempt))
            if time.monotonic() + pause >= deadline:
                raise Stopped(f"the server is busy (status {status}) for {pause:.0f} s more")
            self._sleep(pause)
            attempt += 1

    def _exchange(self, body: bytes, seconds: float) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request. Returns status, headers and body of the response. Raises Stopped and BadAnswer."""
        request = urllib.request.Request(self._url, body, self._headers)  # noqa: S310 - see `request_url`
        try:
            with self._opener.open(request, timeout=max(seconds, 0.001)) as response:
                answer: bytes = response.read(LARGEST_ANSWER_BYTES)
                if self._key:  # some servers repeat it in error messages
                    answer = answer.replace(self._key.encode(), b"[key]")
                return response.status, response.headers, answer
        except TimeoutError:
            raise Stopped(self.timeout_message) from None
        except (urllib.error.URLError, http.client.InvalidURL, ValueError) as error:  # no usable address
            raise Stopped(f"no server answers at {self._url}: {getattr(error, 'reason', error)}") from None
        except (OSError, http.client.HTTPException):
            raise BadAnswer("the server closed the connection before its answer was complete") from None

"""The server of the model: one request, one answer, and what its refusals mean.

The protocol is `POST {base}/chat/completions`, which OpenAI, Ollama, llama.cpp, LM Studio and vLLM share. No
redirect is followed, and no message of this module has the key.
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
LONGEST_PAUSE_SECONDS = 60.0  # where a busy server does not say how long to wait


class Stopped(Exception):
    """No further request makes sense; the text is a sentence that says why."""


# ---- Address and key ----


def is_this_machine(host: str) -> bool:
    """Whether requests to the host stay on this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def address_of(base: str) -> str:
    """The address to which requests for `base` go. Raises Stopped."""
    with suppress(ValueError):
        url = urlsplit(base)
        is_private = url.scheme == "https" or (url.scheme == "http" and is_this_machine(url.hostname or ""))
        if is_private and url.hostname and url.port != 0 and not (url.username or url.query or url.fragment):
            return f"{base.rstrip('/')}/chat/completions"
    raise Stopped(f"--url {base}: expected https://HOST/v1, or http://127.0.0.1:PORT/v1 on this machine")


def key_for(base: str, variable: str, environment: Mapping[str, str]) -> str:
    """The key for a server, empty for none: that of the variable, or OpenAI's for OpenAI. Raises Stopped."""
    name = variable or (OPENAI_KEY if urlsplit(base).hostname == OPENAI_HOST else "")
    key = environment.get(name, "").strip()
    if name and not re.fullmatch("[!-~]+", key):
        raise Stopped(f"the environment variable {name} holds no key")
    return key


# ---- Statuses that are no success ----

REFUSED_KEY = "the server refuses the key; --key-variable names the environment variable that holds it"
NO_CREDIT = "the quota or the credit at the server is used up"
STOPPING = {401: REFUSED_KEY, 403: REFUSED_KEY, 402: NO_CREDIT}
UNUSABLE = {400, 413, 422, 500}  # perhaps only for these reviews
BUSY = {408, 429, 502, 503, 504, 529}  # 503 also while a model is loaded


def pause_seconds(status: int, headers: Mapping[str, str], body: bytes, attempt: int) -> float:
    """How long to wait before the same request is sent again. Raises Stopped and BadAnswer."""
    if status in UNUSABLE:
        raise BadAnswer(f"status {status}: {error_message(body)}")
    if status in STOPPING or b"insufficient_quota" in body:
        raise Stopped(STOPPING.get(status, NO_CREDIT))
    if status not in BUSY:
        words = f"redirects to {headers['Location']}" if "Location" in headers else error_message(body)
        raise Stopped(f"the server answers with status {status}: {words}")
    wanted = headers.get("Retry-After", "")
    if re.fullmatch("[0-9]{1,9}", wanted):
        return float(wanted)
    with suppress(ValueError, TypeError):  # no date, or one without a zone
        return max(0.0, (parsedate_to_datetime(wanted) - datetime.now(UTC)).total_seconds())
    return min(LONGEST_PAUSE_SECONDS, 2.0**attempt)


# ---- Client ----


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Answers of every status are answers: none is raised, and no redirect is followed."""

    def http_response(self, request: urllib.request.Request, response: Json) -> Json:
        return response

    https_response = http_response


class Client:
    """Asks one model at one server. Any thread may use it."""

    def __init__(
        self,
        base: str,
        model: str,
        key: str,
        timeout_seconds: float,
        sleep: Callable[[float], None] = time.sleep,
    ):
        """`timeout_seconds` is for an answer with all pauses before it. Raises Stopped."""
        self.model, self._key, self.timeout_seconds = model, key, timeout_seconds
        self._address, self._sleep = address_of(base), sleep
        self._headers = {"Content-Type": "application/json", "User-Agent": "reviewsd-insights"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        is_here = is_this_machine(urlsplit(base).hostname or "")
        no_proxy = [urllib.request.ProxyHandler({})] if is_here else []
        self._opener = urllib.request.build_opener(_AnyStatus, *no_proxy)
        self._limit_key = "max_tokens"

    def ask(self, prompt: Prompt) -> Json:
        """What the answer to a prompt means. Raises Stopped, and BadAnswer where fewer reviews may do."""
        deadline = time.monotonic() + self.timeout_seconds
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
            pause = pause_seconds(status, headers, answer, attempt)
            if time.monotonic() + pause >= deadline:
                raise Stopped(f"the server is busy (status {status}) for {pause:.0f} s more")
            self._sleep(pause)
            attempt += 1

    def no_answer(self) -> Stopped:
        """What is raised for a server that hangs."""
        return Stopped(f"no answer within {self.timeout_seconds:g} s; --timeout gives the server more time")

    def _exchange(self, body: bytes, seconds: float) -> tuple[int, Mapping[str, str], bytes]:
        """Status, header fields and body of an answer. Raises Stopped and BadAnswer."""
        request = urllib.request.Request(self._address, body, self._headers)  # noqa: S310 - see `address_of`
        try:
            with self._opener.open(request, timeout=max(seconds, 0.001)) as response:
                answer: bytes = response.read(LARGEST_ANSWER_BYTES)
                if self._key:  # which a server may repeat
                    answer = answer.replace(self._key.encode(), b"[key]")
                return response.status, response.headers, answer
        except TimeoutError:
            raise self.no_answer() from None
        except urllib.error.URLError as error:
            raise Stopped(f"no server answers at {self._address}: {error.reason}") from None
        except (OSError, http.client.HTTPException):
            raise BadAnswer("the server broke its answer off") from None

"""The client accepts what servers of the protocol send, and names the reason when it stops."""

from functools import partial
from itertools import repeat
from typing import Any

import pytest
from lab.model_server import ModelServer, Response, completion, fault, read_well

from reviewslib.annotator.client import Client
from reviewslib.annotator.prompts import BadAnswer, annotation_prompt
from reviewslib.terminal import CommandFailed

PROMPT = annotation_prompt({"aspects": [{"id": "price", "label": "Price"}]})
REVIEWS = [{"id": "a", "text": "price"}]
READ = {"a": {"aspects": [{"id": "price", "sentiment": "positive", "phrase": "price"}]}}
MENTION = {"id": "price", "sentiment": "neutral", "phrase": None}


def test_a_busy_server_is_asked_again_after_a_pause(server: ModelServer) -> None:
    asked = ("98", "4", "Wed, 21 Oct 2015 07:28:00 GMT")
    server.next = [fault(status) for status in (408, 429, 502, 503, 504, 529)]
    server.next += [fault(503, Retry_After=value) for value in asked]
    pauses = list[float]()
    assert Client(server.url, "m", 99, sleep=pauses.append).ask(PROMPT, REVIEWS) == READ
    assert pauses == [5, 5, 5, 5, 5, 5, 98, 5, 5]


def test_another_name_of_the_token_limit_is_learnt_once(server: ModelServer) -> None:
    server.next = [
        fault(400, "Unsupported: 'max_tokens'. Use 'max_completion_tokens' instead.")
    ] * 2
    with pytest.raises(BadAnswer, match="Unsupported"):
        Client(server.url, "m", 99).ask(PROMPT, REVIEWS)
    limits = [{"max_tokens": 380}, {"max_completion_tokens": 380}]
    assert [dict([*request.items()][-1:]) for request in server.requests] == limits


# ---- Faults ----


def read(*numbers: float, **more: Any) -> Response:
    """An answer for these numbers."""
    return completion({"reviews": [{"n": n, "aspects": []} | more for n in numbers]})


KEY_REFUSED = "the key is refused (--key-variable names it)"
UNREADABLE = "the answer cannot be read: not JSON"
NO_COMPLETION = "the response is not a chat completion: "
SCHEMA = "the answer violates its schema at $.reviews[0]"
STOPPING = [
    (fault(401, "Wrong key: sesame"), f"status 401: {KEY_REFUSED}: {{"),
    (fault(403), f"status 403: {KEY_REFUSED}"),
    (
        fault(404, "sesame"),
        '404: --model or --url is wrong: {"error": {"message": "[key]"',
    ),
    (fault(402), "402: the quota or credit is used up"),
    (
        fault(429, "You exceeded it", "insufficient_quota"),
        "429: the quota or credit is used up",
    ),
    (fault(429, Retry_After="99"), "429: the quota or credit is used up"),
    (fault(307, Location="http://127.0.0.1:1/"), "status 307: {"),
    ((418, {}, [b"tea\x1b\n pot"]), "answers with status 418: tea\x1b pot"),
    ((204, {}, []), "answers with status 204: (no message)"),
]
UNUSABLE = [
    *[
        (fault(status, "too long"), f'status {status}: {{"error"')
        for status in (400, 413, 422)
    ],
    ((500, {}, [b"\n x" * 99]), "status 500: x x"),
    (completion('{"reviews": [', "length"), "the answer was cut off"),
    (completion(None, refusal="I cannot"), "the model refused"),
    (completion("", "content_filter"), "the model refused"),
    (completion("Sure! Here is"), UNREADABLE),
    (
        completion('{"reviews": [{"n": NaN}]}'),
        "the answer cannot be read: nan is not a number that JSON has",
    ),
    ((200, {}, [b"<html>"]), UNREADABLE),
    ((200, {}, [b'{"error": "Unexpected endpoint"}']), f'{NO_COMPLETION}{{"error"'),
    ((200, {}, [b"[]"]), NO_COMPLETION),
    ((200, {}, repeat(b" " * 65536)), UNREADABLE),  # without end
    ((200, {"Content-Length": "900"}, [b'{"choices": [{"mess']), UNREADABLE),
    (
        (200, {"Transfer-Encoding": "chunked"}, [b"5\r\n{"]),
        "the server closed the connection before",
    ),
    *[(read(*numbers), "omits or repeats reviews") for numbers in ([], [1, 1], [2])],
    (read(1, score=1), SCHEMA),
    *[(read(1, aspects=[MENTION | {key: 5}]), SCHEMA) for key in MENTION],
]


@pytest.mark.parametrize(
    ("kind", "response", "reason"),
    [(CommandFailed, *row) for row in STOPPING]
    + [(BadAnswer, *row) for row in UNUSABLE],
)
def test_a_fault_is_one_sentence_with_its_reason_without_the_key(
    server: ModelServer,
    kind: Any,
    response: Response,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("K", "sesame")
    server.next = [response]
    with pytest.raises(kind) as error:
        Client(server.url, "m", 99, "K").ask(PROMPT, REVIEWS)
    assert reason in str(error.value)
    assert "sesame" not in str(error.value)
    assert len(str(error.value)) < 300
    assert server.keys == ["Bearer sesame"]


REFUSED = [
    (f"{scheme}://127.0.0.1:1", "Connection refused") for scheme in ("http", "https")
]


@pytest.mark.parametrize(("host", "reason"), [*REFUSED, ("https://a..example", "idna")])
def test_an_absent_server_is_an_error_with_its_url(host: str, reason: str) -> None:
    with pytest.raises(
        CommandFailed,
        match=f"no server answers at {host}/v1/chat/completions: .*{reason}",
    ):
        Client(f"{host}/v1/", "m", 60).ask(PROMPT, REVIEWS)


@pytest.mark.parametrize("late", ["hang", "drip"])
def test_each_request_has_a_deadline_that_other_answers_do_not_move(
    server: ModelServer, late: str
) -> None:
    # The last answer arrives after the deadline of the first.
    server.next = [getattr(server, late), read_well, partial(server.hang, seconds=0.5)]
    thirty = [{"id": f"{n}", "text": "Good"} for n in range(30)]
    outcomes = Client(server.url, "m", 0.4).outcomes(PROMPT, thirty, 2)
    assert len(next(outcomes)[0]) == 12
    with pytest.raises(CommandFailed, match=r"no answer within 0\.4 s"):
        next(outcomes)
    assert len(server.requests) == 3, "two at once"


# ---- URL and key ----

OPENAI = "https://api.openai.com/v1"
LOCAL = "http://127.0.0.1:11434/v1"
FREE = [LOCAL, "http://localhost/v1/", "http://[::1]:8/v1", "https://[2001:db8::1]/v1"]
KEYS = [(OPENAI, "", "sk-1"), (OPENAI, "OTHER", "o"), (LOCAL, "OTHER", "o")]
KEYS += [(base, "", "") for base in (*FREE, "https://api.openai.com.example/v1")]
NO_KEY = "the environment variable {} contains no key"
KEYS += [(LOCAL, name, NO_KEY.format(name)) for name in ("BAD", "EMPTY", "GONE")]
REFUSED_URLS = [
    *(
        "http://192.168.1.5:11434/v1",
        "http://localhost.example/v1",
        "http://127.0.0.1@example.org/v1",
    ),
    *(
        "https://key@example.org/v1",
        "https://example.org/v1?key=x",
        "http://[::1/",
        "http://127.0.0.1:1/v 1",
    ),
    *("file:///etc/passwd", "https:///v1", "https://ü.example/", ""),
]
KEYS += [
    (url, "", f"--url {url}: expected https://HOST/v1, or http://127")
    for url in REFUSED_URLS
]


@pytest.mark.parametrize(("base", "variable", "result"), KEYS)
def test_texts_and_keys_go_only_where_they_may(
    base: str, variable: str, result: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "OPENAI_API_KEY": " sk-1\n",
        "OTHER": "o",
        "BAD": "a\nb",
        "EMPTY": "",
    }.items():
        monkeypatch.setenv(name, text)
    try:
        client = Client(base, "m", 60, variable)
    except CommandFailed as error:
        assert str(error).startswith(result or "no error")
    else:
        assert client.key == result
        assert "sk-1" not in repr(client)

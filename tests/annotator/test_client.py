"""The client accepts what servers of the protocol send, and names the reason when it stops."""

from collections.abc import Iterator
from typing import Any

import pytest
from model_server import ModelServer, Response, completion, fault, model_server, read_well

from reviewslib.annotator.client import Client, Stopped
from reviewslib.annotator.prompts import BadAnswer, annotation_prompt

PROMPT = annotation_prompt({"aspects": [{"id": "price", "label": "Price"}]})
REVIEWS = [{"id": "a", "text": "price"}]
READ = {"a": {"aspects": [{"id": "price", "sentiment": "positive", "phrase": "price"}]}}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


def asked(server: ModelServer, *first: Any, **options: Any) -> Any:
    """The answer that a client gets from a server that first sends `first`."""
    server.next = list(first)
    return Client(server.url, "m", 99, **options).ask(PROMPT, REVIEWS)


def test_a_busy_server_is_asked_again_after_its_retry_after(server: ModelServer) -> None:
    date, pauses = "Wed, 21 Oct 2015 07:28:00 GMT", list[float]()
    busy = [fault(429, Retry_After="7"), fault(503, Retry_After=date), fault(503, Retry_After="0")]
    busy += [fault(status) for status in (408, 502, 503, 504, 529)]
    assert asked(server, *busy, sleep=pauses.append) == READ
    assert pauses == [7, 5, 5, 5, 5, 5, 5, 5]


@pytest.mark.parametrize("seconds", ["99", "999999999"])
def test_a_pause_as_long_as_the_timeout_stops(server: ModelServer, seconds: str) -> None:
    with pytest.raises(Stopped, match="429, and to wait"):
        asked(server, fault(429, Retry_After=seconds))


LIMIT = fault(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")


def test_another_name_of_the_token_limit_is_learnt_once(server: ModelServer) -> None:
    with pytest.raises(BadAnswer, match="Unsupported"):
        asked(server, LIMIT, LIMIT)
    limits = [{"max_tokens": 380}, {"max_completion_tokens": 380}]
    assert [dict([*request.items()][-1:]) for request in server.requests] == limits


STOPPING = [
    (fault(401, "Incorrect key: sesame"), "status 401: the key is refused (--key-variable names it): "),
    (fault(403, "sesame"), "status 403: the key is refused"),
    (
        fault(404, "no model m, sesame"),
        '404: --model or --url is wrong: {"error": {"message": "no model m, [key]"',
    ),
    (fault(402), "402: the quota or credit is used up"),
    (fault(429, "You exceeded it", "insufficient_quota"), "429: the quota or credit is used up"),
    (fault(307, Location="http://127.0.0.1:1/"), "status 307: {"),
    ((418, {}, [b"tea\x1b\n pot"]), "status 418: tea\x1b pot"),
    ((204, {}, []), "status 204: (no message)"),
]


@pytest.mark.parametrize(("response", "sentence"), STOPPING)
def test_an_error_that_stops_has_its_reason_without_the_key(
    server: ModelServer, response: Response, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K", "sesame")
    with pytest.raises(Stopped) as error:
        asked(server, response, key_variable="K")
    assert sentence in str(error.value) and "sesame" not in str(error.value)
    assert [headers["Authorization"] for headers in server.headers] == ["Bearer sesame"]


def read(*numbers: float, **more: Any) -> Response:
    """An answer for these numbers."""
    return completion({"reviews": [{"n": n, "aspects": []} | more for n in numbers]})


def aspect(**members: Any) -> Response:
    """An answer with one mention."""
    return read(1, aspects=[{"id": "price", "sentiment": "neutral", "phrase": None} | members])


UNREADABLE = "the answer cannot be read: not JSON"
NO_COMPLETION = "the response is not a chat completion: "
UNUSABLE = [
    *[(fault(status, "too long"), f'status {status}: {{"error"') for status in (400, 413, 422)],
    ((500, {}, [b"\n x" * 99]), "status 500: x x"),
    (completion('{"reviews": [', "length"), "the answer was cut off"),
    (completion(None, refusal="I cannot"), "the model refused"),
    (completion("", "content_filter"), "the model refused"),
    (completion("Sure! Here is"), UNREADABLE),
    (completion('{"reviews": [{"n": NaN}]}'), "the answer cannot be read: nan is not a number that JSON has"),
    ((200, {}, [b"<html>"]), UNREADABLE),
    ((200, {}, [b'{"error": "Unexpected endpoint"}']), f'{NO_COMPLETION}{{"error"'),
    ((200, {}, [b"[]"]), NO_COMPLETION),
    ((200, {"Content-Length": "900"}, [b'{"choices": [{"mess']), "the server closed the connection"),
    ((200, {"Transfer-Encoding": "chunked"}, [b"5\r\n{"]), "the server closed the connection before"),
    (read(), "omits or repeats reviews"),
    (read(1, 1), "omits or repeats reviews"),
    (read(2), "omits or repeats reviews"),
    (read(1, score=1), "violates its schema at $.reviews[0]"),
    (aspect(id="wait"), "violates its schema"),
    (aspect(sentiment="good"), "violates its schema"),
    (aspect(phrase=5), "violates its schema"),
]


@pytest.mark.parametrize(("response", "reason"), UNUSABLE)
def test_an_unusable_answer_is_an_error_with_a_reason(
    server: ModelServer, response: Response, reason: str
) -> None:
    with pytest.raises(BadAnswer) as error:
        asked(server, response)
    assert reason in str(error.value) and len(str(error.value)) < 300


# ---- Address and key ----


@pytest.mark.parametrize("host", ["http://127.0.0.1:1", "https://a..example"])
def test_an_absent_server_is_an_error_with_its_url(host: str) -> None:
    with pytest.raises(Stopped, match=f"no server answers at {host}/v1/chat/completions: "):
        Client(f"{host}/v1/", "m", 60).ask(PROMPT, REVIEWS)


OPENAI, LOCAL = "https://api.openai.com/v1", "http://127.0.0.1:11434/v1"
SECRETS = {"OPENAI_API_KEY": " sk-1\n", "OTHER": "o", "BAD": "a\nb", "EMPTY": ""}
KEYS = [
    (OPENAI, "", "sk-1"),
    ("https://api.openai.com.example/v1", "", ""),
    (LOCAL, "", ""),
    (LOCAL, "OTHER", "o"),
    (OPENAI, "OTHER", "o"),
    ("http://localhost/v1/", "", ""),
    ("http://[::1]:8/v1", "", ""),
]


@pytest.mark.parametrize(("base", "variable", "key"), KEYS)
def test_the_key_of_openai_goes_to_openai_alone(
    base: str, variable: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    client = Client(base, "m", 60, variable)
    assert client.key == key and "sk-1" not in repr(client)


@pytest.mark.parametrize("variable", ["BAD", "EMPTY", "ABSENT"])
def test_a_variable_without_a_key_stops(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Stopped, match=f"{variable} contains no key"):
        Client(LOCAL, "m", 60, variable)


ELSEWHERE = [
    *("http://192.168.1.5:11434/v1", "http://localhost.example/v1", "http://127.0.0.1@example.org/v1"),
    *("https://key@example.org/v1", "https://example.org/v1?key=x", "http://[::1/", "http://127.0.0.1:1/v 1"),
    *("file:///etc/passwd", "https:///v1", "https://ü.example/", ""),
]


@pytest.mark.parametrize("base", ELSEWHERE)
def test_requests_go_over_https_or_stay_on_this_machine(base: str) -> None:
    with pytest.raises(Stopped, match="expected https://HOST/v1"):
        Client(base, "m", 60)


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert asked(server) == READ


# ---- Several requests ----

THIRTY = [{"id": f"{n}", "text": "Good"} for n in range(30)]


def test_the_deadline_of_a_request_is_not_moved_by_other_answers(server: ModelServer) -> None:
    server.next = [server.hang, read_well, server.delay]  # the last answer arrives late
    outcomes = Client(server.url, "m", 0.4).outcomes(PROMPT, THIRTY, 2)
    assert len(next(outcomes)[0]) == 12
    with pytest.raises(Stopped, match=r"no answer within 0\.4 s"):
        next(outcomes)


def test_no_more_requests_than_allowed_are_under_way(server: ModelServer) -> None:
    server.behaviour = server.hang
    with pytest.raises(Stopped, match="no answer within"):
        next(Client(server.url, "m", 0.3).outcomes(PROMPT, THIRTY, 2))
    assert len(server.requests) == 2

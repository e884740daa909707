"""The client accepts what servers of the protocol send, and names the reason when it stops."""

from typing import Any

import pytest
from model_server import ModelServer, completion, fault, model_server

from reviewslib.annotator.client import Client, Stopped, host_of, key_for
from reviewslib.annotator.prompts import BadAnswer, annotation_prompt

EDITORIAL = {"aspects": [{"id": "price", "label": "Price"}]}
PROMPT, REVIEWS = annotation_prompt(EDITORIAL), [{"id": "a", "text": "price"}]
READ = {"a": {"aspects": [{"id": "price", "sentiment": "positive", "phrase": "price"}]}}
QUOTA = fault(429, "You exceeded your quota", "insufficient_quota")


def asked(server: ModelServer, *first: Any, key: str = "") -> tuple[Any, list[float]]:
    """The answer that a client gets from a server that first sends `first`, and the client's pauses."""
    server.next, server.requests, pauses = list(first), [], list[float]()
    return Client(server.url, "m", key, 99, pauses.append).ask(PROMPT, REVIEWS), pauses


def test_a_busy_server_is_asked_again_after_its_retry_after() -> None:
    date = fault(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")
    with model_server() as server:
        responses = [fault(429, Retry_After="7"), date, fault(503, Retry_After="0")]
        responses += [fault(status) for status in (408, 502, 503, 504, 529)]
        assert asked(server, *responses) == (READ, [7, 2, 1, 8, 16, 32, 60, 60])


@pytest.mark.parametrize("seconds", ["99", "999999999"])
def test_a_pause_as_long_as_the_timeout_stops(seconds: str) -> None:
    with model_server() as server, pytest.raises(Stopped, match=r"busy \(status 429\)"):
        asked(server, fault(429, Retry_After=seconds))


def test_another_name_of_the_token_limit_is_learnt_once() -> None:
    error = fault(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    with model_server() as server:
        assert asked(server, error) == (READ, [])
        assert [request.get("max_completion_tokens") for request in server.requests] == [None, 380]
        with pytest.raises(BadAnswer, match="Unsupported"):
            asked(server, error, error)


@pytest.mark.parametrize(("response", "sentence"), [
    (fault(401, "Incorrect key: sesame"), "the server refuses the key; name its environment variable"),
    (fault(403, "sesame"), "the server refuses the key"),
    (fault(404, 'model "m" not found, sesame'), 'status 404: model "m" not found, [key]'),
    (fault(402), "the quota or credit at the server is used up"),
    (QUOTA, "the quota or credit at the server is used up"),
    (fault(307, Location="http://127.0.0.1:1/"), "redirects to http://127.0.0.1:1/"),
    (fault(418, "tea"), "status 418: tea"),
    ((204, {}, []), "status 204: (no message)"),
])  # fmt: skip
def test_an_error_that_stops_has_its_reason_without_the_key(response: Any, sentence: str) -> None:
    with model_server() as server:
        with pytest.raises(Stopped) as error:
            asked(server, response, key="sesame")
        assert sentence in str(error.value) and "sesame" not in str(error.value)
        assert len(server.requests) == 1
        assert server.headers[0]["Authorization"] == "Bearer sesame"


def number(*numbers: float, **more: Any) -> Any:
    """An answer for these numbers."""
    return completion({"reviews": [{"n": n, "aspects": []} | more for n in numbers]})


@pytest.mark.parametrize(("response", "reason"), [
    (fault(400, "the request exceeds the context"), "status 400: the request exceeds the context"),
    *[(fault(status, "large"), f"status {status}: large") for status in (413, 422)],
    (fault(500, "\x1b[2J\nx" * 99), "status 500: \x1b[2J x"),
    (completion('{"reviews": [', "length"), "the answer was cut off"),
    (completion(None, refusal="I cannot"), "the model refused"),
    (completion("", "content_filter"), "the model refused"),
    (completion("Sure! Here is"), "the answer cannot be read: not JSON"),
    (completion('{"reviews": [{"n": NaN}]}'), "the answer cannot be read: nan is not a number that JSON has"),
    (completion("[" * 99), "the answer cannot be read: not JSON"),
    ((200, {}, [b"<html>"]), "the answer cannot be read: not JSON"),
    ((200, {}, [b'{"error": "Unexpected endpoint"}']), "not a chat completion: Unexpected endpoint"),
    ((200, {}, [b" " * 2**22, b"{}"]), "the answer cannot be read: not JSON"),
    ((200, {}, [b"[]"]), "the response is not a chat completion"),
    ((200, {"Content-Length": "900"}, [b'{"choices": [{"mess']), "the answer cannot be read: not JSON"),
    ((200, {"Transfer-Encoding": "chunked"}, [b"5\r\n{"]), "the server closed the connection before"),
    (number(), "omits or repeats reviews"),
    (number(1, 1), "omits or repeats reviews"),
    (number(2), "omits or repeats reviews"),
    (number(1, score=1), "violates its schema at $.reviews[0]"),
    (number(1, aspects=[{"id": "wait", "sentiment": "negative", "phrase": None}]), "violates its schema"),
    (number(1, aspects=[{"id": "price", "sentiment": "good", "phrase": None}]), "violates its schema"),
    (number(1, aspects=[{"id": "price", "sentiment": "neutral"}]), "violates its schema"),
])  # fmt: skip
def test_an_unusable_answer_is_an_error_with_a_reason(response: Any, reason: str) -> None:
    with model_server() as server, pytest.raises(BadAnswer) as error:
        asked(server, response)
    assert reason in str(error.value) and len(str(error.value)) < 300


@pytest.mark.parametrize("host", ["http://127.0.0.1:1", "https://a..example"])
def test_an_absent_server_is_an_error_with_its_url(host: str) -> None:
    with pytest.raises(Stopped, match=f"no server answers at {host}/v1/chat/completions: "):
        Client(f"{host}/v1/", "m", "", 60).ask(PROMPT, REVIEWS)


TAKEN = [
    "https://api.openai.com/v1",
    "http://127.0.0.1:11434/v1",
    "http://localhost/v1/",
    "http://[::1]:8/v1",
]
REFUSED = [
    *("http://192.168.1.5:11434/v1", "http://localhost.example/v1", "http://127.0.0.1@example.org/v1"),
    *("https://key@example.org/v1", "https://example.org/v1?key=x", "http://[::1/", "http://127.0.0.1:1/v 1"),
    *("file:///etc/passwd", "https:///v1", "https://ü.example/", ""),
]


@pytest.mark.parametrize("base", TAKEN)
def test_requests_go_over_https_or_stay_on_this_machine(base: str) -> None:
    assert f"//{host_of(base)}" in base


@pytest.mark.parametrize("base", REFUSED)
def test_requests_go_nowhere_else(base: str) -> None:
    with pytest.raises(Stopped, match="expected https://HOST/v1"):
        Client(base, "m", "", 60)


def test_the_key_of_openai_goes_to_openai_alone() -> None:
    environment = {"OPENAI_API_KEY": " sk-1\n", "OTHER": "o", "BAD": "a\nb", "EMPTY": ""}
    openai, local = "https://api.openai.com/v1", "http://localhost/v1"
    assert key_for(openai, "", environment) == "sk-1"
    for other in ("https://api.openai.com.example/v1", local):
        assert key_for(other, "", environment) == ""
    assert key_for(local, "OTHER", environment) == key_for(openai, "OTHER", environment) == "o"
    for base, variable in ((openai, "BAD"), (local, "EMPTY"), (local, "ABSENT")):
        with pytest.raises(Stopped, match=f"{variable} contains no key"):
            key_for(base, variable, environment)
    with pytest.raises(Stopped, match="OPENAI_API_KEY contains no key"):
        key_for(openai, "", {})


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with model_server() as server:
        assert asked(server)[0] == READ

"""The client accepts what servers of the protocol send, and names the reason when it stops.

Sections: Servers that are busy, or newer - Faults - Deadlines - URL and key
"""

import threading
from collections.abc import Callable
from functools import partial
from itertools import repeat
from pathlib import Path
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


def ignore() -> None:
    """Nothing to do while an answer is waited for."""


# ---- Servers that are busy, or newer ----


@pytest.mark.parametrize(
    ("busy", "pause"),
    [
        *[(fault(status), 5) for status in (408, 429, 502, 503, 504, 529)],
        pytest.param(fault(503, Retry_After="98"), 98, id="as long as it asks"),
        pytest.param(fault(503, Retry_After="4"), 5, id="never less than 5 s"),
        pytest.param(
            fault(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"), 5, id="a date"
        ),
    ],
)
def test_a_busy_server_is_asked_again_after_a_pause(
    server: ModelServer, busy: Response, pause: float
) -> None:
    server.next = [busy]
    pauses = list[float]()

    answer = Client(server.url, "m", 99, sleep=pauses.append).ask(PROMPT, REVIEWS)

    assert answer == READ
    assert pauses == [pause]


def test_another_name_of_the_token_limit_is_learnt(server: ModelServer) -> None:
    told = "Unsupported: 'max_tokens'. Use 'max_completion_tokens' instead."
    server.next = [fault(400, told)]

    answer = Client(server.url, "m", 99).ask(PROMPT, REVIEWS)

    assert answer == READ
    first, second = server.requests
    assert first["max_tokens"] == 380
    assert second["max_completion_tokens"] == 380
    assert "max_tokens" not in second


def test_the_name_of_the_token_limit_is_learnt_once(server: ModelServer) -> None:
    told = "Unsupported: 'max_tokens'. Use 'max_completion_tokens' instead."
    server.next = [fault(400, told), fault(400, told)]

    with pytest.raises(BadAnswer, match="Unsupported"):
        Client(server.url, "m", 99).ask(PROMPT, REVIEWS)

    assert len(server.requests) == 2


# ---- Faults ----


def read(*numbers: float, **more: Any) -> Response:
    """An answer for these numbers."""
    return completion({"reviews": [{"n": n, "aspects": []} | more for n in numbers]})


def error_of(server: ModelServer, kind: type[Exception], response: Response) -> str:
    """The text of the error for a response."""
    server.next = [response]
    with pytest.raises(kind) as error:
        Client(server.url, "m", 99, "K").ask(PROMPT, REVIEWS)
    return str(error.value)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key "sesame" in the variable K, which no message may contain."""
    monkeypatch.setenv("K", "sesame")


KEY_REFUSED = "the key is refused (--key-variable or --key-file names it)"
UNREADABLE = "the answer cannot be read: not JSON"
NO_COMPLETION = "the response is not a chat completion: "
SCHEMA = "the answer violates its schema at $.reviews[0]"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (fault(401, "Wrong key: sesame"), f"status 401: {KEY_REFUSED}: {{"),
        (fault(403), f"status 403: {KEY_REFUSED}"),
        (fault(404), "404: --model or --url is wrong: {"),
        (fault(402), "402: the quota or credit is used up"),
        (fault(429, "No", "insufficient_quota"), "429: the quota or credit is used up"),
        (fault(429, Retry_After="99"), "429: the quota or credit is used up"),
        (fault(307, Location="http://127.0.0.1:1/"), "status 307: {"),
        ((418, {}, [b"tea\x1b\n pot"]), "answers with status 418: tea\x1b pot"),
        ((204, {}, []), "answers with status 204: (no message)"),
    ],
)
def test_what_no_smaller_request_mends_ends_the_command(
    server: ModelServer, response: Response, reason: str
) -> None:
    text = error_of(server, CommandFailed, response)

    assert reason in text
    assert len(text) < 300


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (fault(400, "too long"), 'status 400: {"error"'),
        (fault(413, "too long"), 'status 413: {"error"'),
        (fault(422, "too long"), 'status 422: {"error"'),
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
        ((200, {}, [b'{"error": "No"}']), f'{NO_COMPLETION}{{"error"'),
        ((200, {}, [b"[]"]), NO_COMPLETION),
        pytest.param((200, {}, repeat(b" " * 65536)), UNREADABLE, id="without end"),
        pytest.param(
            (200, {"Content-Length": "900"}, [b'{"choices": [{"mess']),
            UNREADABLE,
            id="shorter than announced",
        ),
        pytest.param(
            (200, {"Transfer-Encoding": "chunked"}, [b"5\r\n{"]),
            "the server closed the connection before",
            id="half a chunk",
        ),
        (read(), "omits or repeats reviews"),
        (read(1, 1), "omits or repeats reviews"),
        (read(2), "omits or repeats reviews"),
        (read(1, score=1), SCHEMA),
        (read(1, aspects=[MENTION | {"id": 5}]), SCHEMA),
        (read(1, aspects=[MENTION | {"sentiment": 5}]), SCHEMA),
        (read(1, aspects=[MENTION | {"phrase": 5}]), SCHEMA),
    ],
)
def test_what_a_smaller_request_may_mend_is_an_unusable_answer(
    server: ModelServer, response: Response, reason: str
) -> None:
    text = error_of(server, BadAnswer, response)

    assert reason in text
    assert len(text) < 300


@pytest.mark.parametrize("status", [401, 404])
def test_no_message_contains_the_key_that_a_server_repeats(
    server: ModelServer, status: int
) -> None:
    text = error_of(server, CommandFailed, fault(status, "sesame"))

    assert server.keys == ["Bearer sesame"]
    assert "sesame" not in text
    assert "[key]" in text


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("http://127.0.0.1:1", "Connection refused"),
        ("https://127.0.0.1:1", "Connection refused"),
        ("https://a..example", "idna"),
    ],
)
def test_an_absent_server_is_an_error_with_its_url(host: str, reason: str) -> None:
    told = f"no server answers at {host}/v1/chat/completions: .*{reason}"

    with pytest.raises(CommandFailed, match=told):
        Client(f"{host}/v1/", "m", 60).ask(PROMPT, REVIEWS)


# ---- Deadlines ----

THIRTY = [{"id": f"{n}", "text": "Good"} for n in range(30)]
LATE: dict[str, Callable[..., Any]] = {
    "nothing is sent": ModelServer.hang,
    "a blank from time to time": ModelServer.drip,
}


@pytest.mark.parametrize("late", LATE.values(), ids=LATE.keys())
def test_each_request_has_a_deadline_that_other_answers_do_not_move(
    server: ModelServer, late: Callable[..., Any]
) -> None:
    # The last answer arrives after the deadline of the first.
    server.next = [
        partial(late, server),
        read_well,
        partial(server.hang, seconds=0.5),
    ]
    outcomes = Client(server.url, "m", 0.4).outcomes(
        PROMPT, THIRTY, parallel=2, waiting=ignore
    )

    batch, _ = next(outcomes)

    assert len(batch) == 12
    with pytest.raises(CommandFailed, match=r"no answer within 0\.4 s"):
        next(outcomes)


def test_no_more_requests_are_under_way_than_asked_for(server: ModelServer) -> None:
    server.next = [server.hang, server.hang]
    outcomes = Client(server.url, "m", 0.4).outcomes(
        PROMPT, THIRTY, parallel=2, waiting=ignore
    )

    with pytest.raises(CommandFailed):
        next(outcomes)

    assert len(server.requests) == 2


def test_while_no_answer_comes_the_caller_is_told(server: ModelServer) -> None:
    is_told = threading.Event()

    def read_late(request: Any) -> Response:
        assert is_told.wait(30)
        return read_well(request)

    server.next = [read_late]

    outcomes = Client(server.url, "m", 60).outcomes(
        PROMPT, REVIEWS, parallel=1, waiting=is_told.set
    )

    assert [answer for _, answer in outcomes] == [READ]


# ---- URL and key ----

OPENAI = "https://api.openai.com/v1"
LOCAL = "http://127.0.0.1:11434/v1"


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-1\n")
    monkeypatch.setenv("OTHER", "o")
    monkeypatch.setenv("BAD", "a\nb")
    monkeypatch.setenv("EMPTY", "")


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize(
    ("base", "variable", "key"),
    [
        (OPENAI, "", "sk-1"),
        (OPENAI, "OTHER", "o"),
        (LOCAL, "OTHER", "o"),
        (LOCAL, "", ""),
        ("http://localhost/v1/", "", ""),
        ("http://[::1]:8/v1", "", ""),
        ("https://[2001:db8::1]/v1", "", ""),
        ("https://api.openai.com.example/v1", "", ""),
    ],
)
def test_a_key_goes_only_where_it_belongs(base: str, variable: str, key: str) -> None:
    client = Client(base, "m", 60, variable)

    assert client.key == key


@pytest.mark.usefixtures("variables")
def test_a_client_does_not_show_its_key() -> None:
    assert "sk-1" not in repr(Client(OPENAI, "m", 60))


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize("name", ["BAD", "EMPTY", "GONE"])
def test_a_variable_without_a_key_is_named(name: str) -> None:
    with pytest.raises(CommandFailed) as error:
        Client(LOCAL, "m", 60, name)

    assert str(error.value) == f"the environment variable {name} contains no key"


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize("base", [OPENAI, LOCAL])
def test_the_key_of_a_file_is_used_instead(tmp_path: Path, base: str) -> None:
    file = tmp_path / "key"
    file.write_text("sesame\n")

    assert Client(base, "m", 60, key_file=file).key == "sesame"


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"\xff", b"a\nb"])
def test_a_file_without_a_key_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)

    with pytest.raises(CommandFailed) as error:
        Client(LOCAL, "m", 60, key_file=file)

    assert str(error.value) == f"the file {file} contains no key"


def test_a_missing_file_of_the_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        Client(LOCAL, "m", 60, key_file=tmp_path / "key")

    assert error.value.filename == str(tmp_path / "key")


@pytest.mark.parametrize(
    "base",
    [
        "http://192.168.1.5:11434/v1",
        "http://localhost.example/v1",
        "http://127.0.0.1@example.org/v1",
        "https://key@example.org/v1",
        "https://example.org/v1?key=x",
        "http://[::1/",
        "http://127.0.0.1:1/v 1",
        "file:///etc/passwd",
        "https:///v1",
        "https://ü.example/",
        "",
    ],
)
def test_texts_go_to_https_or_to_this_machine_alone(base: str) -> None:
    with pytest.raises(CommandFailed) as error:
        Client(base, "m", 60)

    assert str(error.value).startswith(
        f"--url {base}: expected https://HOST/v1, or http://127"
    )

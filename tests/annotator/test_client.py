"""The client accepts what servers of the protocol send, and names the reason when it stops.

Sections: Servers that are busy, or newer - Faults - Deadlines - URL and key
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.client import parse_headers
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from lab.model_server import ModelServer, Response, completion, fault, read_well

from reviewslib.annotator.client import ModelClient
from reviewslib.annotator.prompts import BadAnswer, annotation_prompt
from reviewslib.terminal import CommandFailed

PROMPT = annotation_prompt({"aspects": [{"id": "price", "label": "Price"}]})
REVIEWS = [{"id": "a", "text": "price"}]
READ = {"a": {"aspects": [{"id": "price", "sentiment": "positive", "phrase": "price"}]}}
MENTION = {"id": "price", "sentiment": "neutral", "phrase": None}


def ignore() -> None:
    """Nothing to do while an answer is waited for."""


# ---- Servers that are busy, or newer ----

# 529 is that of Anthropic.
BUSY = (408, 429, 502, 503, 504, 529)


@pytest.mark.parametrize(
    ("busy", "pause"),
    [
        *[pytest.param(fault(status), 5, id=f"{status}") for status in BUSY],
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

    answer = ModelClient(server.url, "m", 99, sleep=pauses.append).ask(PROMPT, REVIEWS)

    assert answer == READ
    assert pauses == [pause]


def test_another_name_of_the_token_limit_is_learnt(server: ModelServer) -> None:
    told = "Unsupported: 'max_tokens'. Use 'max_completion_tokens' instead."
    server.next = [fault(400, told)]

    answer = ModelClient(server.url, "m", 99).ask(PROMPT, REVIEWS)

    assert answer == READ
    first, second = server.requests
    assert first["max_tokens"] == 380
    assert second["max_completion_tokens"] == 380
    assert "max_tokens" not in second


def test_the_name_of_the_token_limit_is_learnt_once(server: ModelServer) -> None:
    told = "Unsupported: 'max_tokens'. Use 'max_completion_tokens' instead."
    server.next = [fault(400, told), fault(400, told)]

    with pytest.raises(BadAnswer, match="Unsupported"):
        ModelClient(server.url, "m", 99).ask(PROMPT, REVIEWS)

    assert len(server.requests) == 2


# ---- Faults ----


def read(*numbers: float, **more: Any) -> Response:
    """An answer for these numbers."""
    return completion({"reviews": [{"n": n, "aspects": []} | more for n in numbers]})


def error_of(server: ModelServer, kind: type[Exception], response: Response) -> str:
    """The text of the error for a response."""
    server.next = [response]
    with pytest.raises(kind) as error:
        ModelClient(server.url, "m", 99, "K").ask(PROMPT, REVIEWS)
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
        pytest.param(
            fault(401, "Wrong key: sesame"),
            f"status 401: {KEY_REFUSED}: {{",
            id="a wrong key",
        ),
        pytest.param(
            fault(403), f"status 403: {KEY_REFUSED}", id="a key without rights"
        ),
        pytest.param(
            fault(404), "404: --model or --url is wrong: {", id="no such model"
        ),
        pytest.param(fault(402), "402: the quota or credit is used up", id="no credit"),
        pytest.param(
            fault(429, "No", "insufficient_quota"),
            "429: the quota or credit is used up",
            id="no quota",
        ),
        pytest.param(
            fault(429, Retry_After="99"),
            "429: the quota or credit is used up",
            id="not for minutes",
        ),
        pytest.param(
            fault(503, Retry_After="9" * 5000),
            "the server answers with status 503",
            id="a pause of more digits than a number may have",
        ),
        pytest.param(
            fault(307, Location="http://127.0.0.1:1/"), "status 307: {", id="a redirect"
        ),
        pytest.param(
            (418, {}, [b"tea\x1b\n pot"]),
            "answers with status 418: tea\x1b pot",
            id="an unknown status",
        ),
        pytest.param(
            (204, {}, []), "answers with status 204: (no message)", id="no message"
        ),
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
        pytest.param(
            fault(400, "too long"), 'status 400: {"error"', id="a bad request"
        ),
        pytest.param(fault(413, "too long"), 'status 413: {"error"', id="too large"),
        pytest.param(
            fault(422, "too long"), 'status 422: {"error"', id="not processable"
        ),
        pytest.param(
            (500, {}, [b"\n x" * 99]), "status 500: x x", id="an error of the server"
        ),
        pytest.param(
            completion('{"reviews": [', "length"),
            "the answer was cut off",
            id="cut off",
        ),
        pytest.param(
            completion(None, refusal="I cannot"), "the model refused", id="a refusal"
        ),
        pytest.param(
            completion("", "content_filter"), "the model refused", id="a filter"
        ),
        pytest.param(completion("Sure! Here is"), UNREADABLE, id="chatter"),
        pytest.param(
            completion('{"reviews": [{"n": NaN}]}'),
            "the answer cannot be read: nan is not a number that JSON has",
            id="NaN",
        ),
        pytest.param((200, {}, [b"<html>"]), UNREADABLE, id="HTML"),
        pytest.param(
            (200, {}, [b'{"error": "No"}']),
            f'{NO_COMPLETION}{{"error"',
            id="an error with status 200",
        ),
        pytest.param((200, {}, [b"[]"]), NO_COMPLETION, id="a list"),
        pytest.param(
            (200, {}, [b'{"choices": [{"message": "Hi"}]}']),
            NO_COMPLETION,
            id="a message that is text",
        ),
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
        pytest.param(read(), "omits or repeats reviews", id="no review"),
        pytest.param(read(1, 1), "omits or repeats reviews", id="a review twice"),
        pytest.param(read(2), "omits or repeats reviews", id="another review"),
        pytest.param(read(1, score=1), SCHEMA, id="a key more"),
        pytest.param(
            read(1, aspects=[MENTION | {"id": 5}]), SCHEMA, id="an id that is a number"
        ),
        pytest.param(
            read(1, aspects=[MENTION | {"sentiment": 5}]),
            SCHEMA,
            id="a sentiment that is one",
        ),
        pytest.param(
            read(1, aspects=[MENTION | {"phrase": 5}]),
            SCHEMA,
            id="a phrase that is one",
        ),
    ],
)
def test_what_a_smaller_request_may_mend_is_an_unusable_answer(
    server: ModelServer, response: Response, reason: str
) -> None:
    text = error_of(server, BadAnswer, response)

    assert reason in text
    assert len(text) < 300


@contextmanager
def resetting_server() -> Iterator[str]:
    """The URL of a server that reads a request, and then resets the connection."""
    # Closing with unsent data thrown away sends a reset (socket(7), SO_LINGER).
    at_once = struct.pack("ii", 1, 0)

    def reset() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as request:
            request.readline()
            fields = parse_headers(request)
            request.read(int(fields["Content-Length"]))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=reset)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        thread.join()


def test_a_smaller_request_may_mend_a_connection_that_is_reset() -> None:
    reason = "the server closed the connection before its answer was complete"
    with (
        resetting_server() as url,
        pytest.raises(BadAnswer, match=reason),
    ):
        ModelClient(url, "m", 99).ask(PROMPT, REVIEWS)


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
        pytest.param("http://127.0.0.1:1", "Connection refused", id="refused"),
        pytest.param(
            "https://127.0.0.1:1", "Connection refused", id="refused with TLS"
        ),
        # Python 3.11 names the codec too.
        pytest.param("https://a..example", "label empty", id="no name"),
    ],
)
def test_an_absent_server_is_an_error_with_its_url(host: str, reason: str) -> None:
    told = f"no server answers at {host}/v1/chat/completions: .*{reason}"

    with pytest.raises(CommandFailed, match=told):
        ModelClient(f"{host}/v1/", "m", 60).ask(PROMPT, REVIEWS)


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
    outcomes = ModelClient(server.url, "m", 0.4).outcomes(
        PROMPT, THIRTY, parallel=2, waiting=ignore
    )

    batch, _ = next(outcomes)

    assert len(batch) == 12
    with pytest.raises(CommandFailed, match=r"no answer within 0\.4 s"):
        next(outcomes)


def test_no_more_requests_are_under_way_than_asked_for(server: ModelServer) -> None:
    server.next = [server.hang, server.hang]
    outcomes = ModelClient(server.url, "m", 0.4).outcomes(
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

    outcomes = ModelClient(server.url, "m", 60).outcomes(
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
        pytest.param(OPENAI, "", "sk-1", id="the key of OpenAI"),
        pytest.param(OPENAI, "OTHER", "o", id="another key"),
        pytest.param(LOCAL, "OTHER", "o", id="for this machine"),
        pytest.param(LOCAL, "", "", id="none for this machine"),
        pytest.param("http://localhost/v1/", "", "", id="localhost"),
        pytest.param("http://[::1]:8/v1", "", "", id="IPv6"),
        pytest.param("https://[2001:db8::1]/v1", "", "", id="another server"),
        pytest.param(
            "https://api.openai.com.example/v1", "", "", id="a name that looks alike"
        ),
    ],
)
def test_a_key_goes_only_where_it_belongs(base: str, variable: str, key: str) -> None:
    client = ModelClient(base, "m", 60, variable)

    assert client.key == key


@pytest.mark.usefixtures("variables")
def test_a_client_does_not_show_its_key() -> None:
    assert "sk-1" not in repr(ModelClient(OPENAI, "m", 60))


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize("name", ["BAD", "EMPTY", "GONE"])
def test_a_variable_without_a_key_is_named(name: str) -> None:
    with pytest.raises(CommandFailed) as error:
        ModelClient(LOCAL, "m", 60, name)

    assert str(error.value) == f"the environment variable {name} contains no key"


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize("base", [OPENAI, LOCAL])
def test_the_key_of_a_file_is_used_instead(tmp_path: Path, base: str) -> None:
    file = tmp_path / "key"
    file.write_text("sesame\n")

    assert ModelClient(base, "m", 60, key_file=file).key == "sesame"


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"\xff", b"a\nb"])
def test_a_file_without_a_key_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)

    with pytest.raises(CommandFailed) as error:
        ModelClient(LOCAL, "m", 60, key_file=file)

    assert str(error.value) == f"the file {file} contains no key"


def test_a_missing_file_of_the_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        ModelClient(LOCAL, "m", 60, key_file=tmp_path / "key")

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
        ModelClient(base, "m", 60)

    assert str(error.value).startswith(
        f"--url {base}: expected https://HOST/v1, or http://127"
    )

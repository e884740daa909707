"""The fake of a language model: it speaks the protocol over a socket, well or badly.

Sections: responses - a model that reads well - the server.
"""

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Object = dict[str, Any]
# Status, header fields, and a body in pieces.
Response = tuple[int, dict[str, str], Iterable[bytes]]
Behaviour = Callable[[Object], Response]


# ---- Responses ----


def texts_of(request: Object) -> dict[int, str]:
    """The texts of reviews in a request, by number."""
    reviews = json.loads(request["messages"][1]["content"])
    return {review["n"]: review["text"] for review in reviews}


def json_response(status: int, value: Any, **headers: str) -> Response:
    """`retry_after` becomes Retry-After."""
    fields = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, fields, [json.dumps(value).encode()]


def completion(content: Any, finish_reason: str = "stop", **message: Any) -> Response:
    """A chat completion whose message has this content, as JSON unless it is text."""
    text = content
    if not isinstance(content, str):
        text = json.dumps(content, ensure_ascii=False)
    answer = {"role": "assistant", "content": text} | message
    choice = {"message": answer, "finish_reason": finish_reason}
    return json_response(200, {"object": "chat.completion", "choices": [choice]})


def fault(
    status: int, message: str = "no", code: str = "x", **headers: str
) -> Response:
    """An error as servers of this protocol send it."""
    error = {"message": message, "code": code}
    return json_response(status, {"error": error}, **headers)


# ---- A model that reads well ----

LABELS = {
    "aspects": ["Price", "Waiting"],
    "topics": ["Parking"],
    "technicians": ["Hana"],
    "services": ["Massage"],
}


def read_well(request: Object) -> Response:
    """Answer with labels, a summary or annotations.

    A text mentions the ids that stand in it, and "slow" is negative.
    """
    task = request["response_format"]["json_schema"]
    texts = texts_of(request)
    if task["name"] == "vocabulary":
        return completion(LABELS)
    if task["name"] == "summary":
        return completion(summary(texts[1]))
    lists = task["schema"]["properties"]["reviews"]["items"]["properties"]
    items = {kind: schema["items"] for kind, schema in lists.items() if kind != "n"}
    reviews = [
        {"n": number} | annotation(text, items) for number, text in texts.items()
    ]
    return completion({"reviews": reviews})


def summary(text: str) -> Object:
    """A summary that also names a review that is not there."""
    question = {"question": "Is it cheap?", "answer": "Yes.", "review_ids": [1]}
    rests_on = [1, 99]
    return {
        "summary": text,
        "review_ids": rests_on,
        "pull_quote": text,
        "faq": [question],
    }


def annotation(text: str, items: Object) -> Object:
    """The lists of the annotation of a text; `items` has the schema of each."""
    found: Object = {}
    for kind, schema in items.items():
        ids = schema.get("enum") or schema["properties"]["id"]["enum"]
        found[kind] = [id for id in ids if id in text.lower()]
    found["aspects"] = [mention(id, text) for id in found["aspects"]]
    return found


def mention(id: str, text: str) -> Object:
    """What a text says of an aspect, with the words of the text."""
    start = text.lower().index(id)
    sentiment = "negative" if "slow" in text else "positive"
    return {"id": id, "sentiment": sentiment, "phrase": text[start : start + len(id)]}


# ---- The server ----


class Handler(BaseHTTPRequestHandler):
    server: "ModelServer"

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/json"
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, headers, content = self.server.respond(
            request, self.headers["Authorization"]
        )
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        # The client may have gone.
        with suppress(OSError):
            for piece in content:
                self.wfile.write(piece)

    def log_message(self, *_: Any) -> None:
        pass


class ModelServer(ThreadingHTTPServer):
    """The requests so far, and the next responses: of `next`, then of `behaviour`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.behaviour: Behaviour = read_well
        self.next: list[Response | Behaviour] = []
        self.requests: list[Object] = []
        self.keys: list[str | None] = []
        self.closing = threading.Event()
        self.lock = threading.Lock()

    def respond(self, request: Object, key: str | None) -> Response:
        with self.lock:
            self.requests.append(request)
            self.keys.append(key)
            chosen = self.next.pop(0) if self.next else self.behaviour
        if callable(chosen):
            return chosen(request)
        return chosen

    def hang(self, request: Object, seconds: float | None = None) -> Response:
        """Send nothing until the end of the test, or for some seconds."""
        self.closing.wait(seconds)
        return read_well(request)

    def drip(self, request: Object) -> Response:
        """Send a blank from time to time."""
        return 200, {}, (b" " for _ in iter(lambda: self.closing.wait(0.02), True))

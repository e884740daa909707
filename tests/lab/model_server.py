"""A server for the tests of the annotator: it speaks the protocol over a real socket, well or badly."""

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Object = dict[str, Any]
Response = tuple[
    int, dict[str, str], Iterable[bytes]
]  # status, header fields, and a body in pieces
Behaviour = Callable[[Object], Response]


def texts_of(request: Object) -> dict[int, str]:
    """The texts of reviews in a request, by number."""
    return {
        review["n"]: review["text"]
        for review in json.loads(request["messages"][1]["content"])
    }


def completion(content: Any, finish_reason: str = "stop", **message: Any) -> Response:
    """A chat completion whose message has this content, as JSON unless it is text."""
    text = (
        content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    )
    choice = {
        "message": {"role": "assistant", "content": text} | message,
        "finish_reason": finish_reason,
    }
    return (
        200,
        {},
        [json.dumps({"object": "chat.completion", "choices": [choice]}).encode()],
    )


def fault(
    status: int, message: str = "no", code: str = "x", **headers: str
) -> Response:
    """An error as servers of this protocol send it."""
    fields = {name.replace("_", "-"): text for name, text in headers.items()}
    return (
        status,
        fields,
        [json.dumps({"error": {"message": message, "code": code}}).encode()],
    )


LABELS = {"aspects": ["Price", "Waiting"], "topics": ["Parking"]}
LABELS |= {"technicians": ["Hana"], "services": ["Massage"]}


def read_well(request: Object) -> Response:
    """Answer with labels, a summary or annotations: a text mentions the ids in it, and "slow" is negative."""
    task = request["response_format"]["json_schema"]
    texts = texts_of(request)
    if task["name"] == "vocabulary":
        return completion(LABELS)
    if task["name"] == "summary":
        faq = [{"question": "Is it cheap?", "answer": "Yes.", "review_ids": [1]}]
        return completion(
            {
                "summary": texts[1],
                "review_ids": [1, 99],
                "pull_quote": texts[1],
                "faq": faq,
            }
        )
    kinds = task["schema"]["properties"]["reviews"]["items"]["properties"].items()
    items = {kind: schema["items"] for kind, schema in kinds if kind != "n"}
    return completion(
        {"reviews": [{"n": n} | annotation(text, items) for n, text in texts.items()]}
    )


def annotation(text: str, items: Object) -> Object:
    """The lists of the annotation of a text; `items` has the schema of the items of each."""
    enums = {
        kind: schema.get("enum") or schema["properties"]["id"]["enum"]
        for kind, schema in items.items()
    }
    found = {
        kind: [id for id in ids if id in text.lower()] for kind, ids in enums.items()
    }
    sentiment = "negative" if "slow" in text else "positive"
    starts = {id: text.lower().index(id) for id in found["aspects"]}
    phrases = {id: text[start : start + len(id)] for id, start in starts.items()}
    return found | {
        "aspects": [
            {"id": id, "sentiment": sentiment, "phrase": phrases[id]} for id in phrases
        ]
    }


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
        with suppress(OSError):  # the client may have gone
            for piece in content:
                self.wfile.write(piece)

    def log_message(self, *_: Any) -> None:
        pass


class ModelServer(ThreadingHTTPServer):
    """The requests so far, and the next responses: those of `next`, then those of `behaviour`."""

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
        return chosen(request) if callable(chosen) else chosen

    def hang(self, request: Object, seconds: float | None = None) -> Response:
        """Send nothing until the end of the test, or for some seconds."""
        self.closing.wait(seconds)
        return read_well(request)

    def drip(self, request: Object) -> Response:
        """Send a blank from time to time."""
        return 200, {}, (b" " for _ in iter(lambda: self.closing.wait(0.02), True))

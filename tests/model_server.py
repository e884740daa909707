"""A server for the tests of the annotator: it speaks the protocol over a real socket, well or badly."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Object = dict[str, Any]
# What is sent: status, header fields, and a body in pieces.
Response = tuple[int, dict[str, str], Iterable[bytes]]
Behaviour = Callable[[Object], Response]


def completion(content: Any, finish_reason: str = "stop", **message: Any) -> Response:
    """A chat completion whose message has this content, as JSON unless it is text."""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    choice = {"message": {"role": "assistant", "content": text} | message, "finish_reason": finish_reason}
    return 200, {}, [json.dumps({"object": "chat.completion", "choices": [choice]}).encode()]


def fault(status: int, message: str = "no", code: str = "x", **headers: str) -> Response:
    """An error as servers of this protocol send it."""
    fields = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, fields, [json.dumps({"error": {"message": message, "code": code}}).encode()]


def texts_of(request: Object) -> dict[int, str]:
    """The texts of reviews in a request, by number."""
    return {review["n"]: review["text"] for review in json.loads(request["messages"][1]["content"])}


LABELS = {"aspects": ["Price", "Waiting"], "topics": ["Parking"]}
LABELS |= {"technicians": ["Hana"], "services": ["Massage"]}


def read_well(request: Object) -> Response:
    """Answer with labels, a summary or annotations: a text mentions the ids in it, and "slow" is negative."""
    task, texts = request["response_format"]["json_schema"], texts_of(request)
    if task["name"] == "vocabulary":
        return completion(LABELS)
    if task["name"] == "summary":
        faq = [{"question": "Is it cheap?", "answer": "Yes.", "review_ids": [1]}]
        return completion({"summary": texts[1], "review_ids": [1, 99], "pull_quote": texts[1], "faq": faq})
    kinds = task["schema"]["properties"]["reviews"]["items"]["properties"]
    return completion({"reviews": [annotation(n, text, kinds) for n, text in texts.items()]})


def annotation(n: int, text: str, kinds: Object) -> Object:
    """The annotation of a text; `kinds` has a schema for each kind."""
    words, lists = text.lower(), dict[str, list[Any]]()
    for kind in kinds.keys() - {"n"}:
        schema = kinds[kind]["items"]
        ids = schema["enum"] if "enum" in schema else schema["properties"]["id"]["enum"]
        lists[kind] = [id for id in ids if id in words]
    sentiment = {"sentiment": "negative" if "slow" in words else "positive"}
    spans = {id: text[words.index(id) :][: len(id)] for id in lists["aspects"]}
    aspects = [{"id": id, "phrase": spans[id]} | sentiment for id in lists["aspects"]]
    return {"n": n} | lists | {"aspects": aspects}


class ModelServer:
    """The requests so far, and the next responses: those of `next`, then those of `behaviour`."""

    def __init__(self, url: str):
        self.url = url
        self.behaviour: Behaviour = read_well
        self.next: list[Response | Behaviour] = []
        self.closing = threading.Event()
        self.requests: list[Object] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()

    def hang(self, request: Object) -> Response:
        """Send nothing until the end of the test."""
        self.closing.wait()
        return fault(503)

    def delay(self, request: Object) -> Response:
        """Answer after half a second."""
        self.closing.wait(0.5)
        return read_well(request)

    def drip(self, request: Object) -> Response:
        """Send a blank from time to time."""
        return 200, {}, (b" " for _ in iter(lambda: self.closing.wait(0.02), True))

    def respond(self, headers: dict[str, str], body: bytes) -> Response:
        request = json.loads(body)
        with self.lock:
            self.requests.append(request)
            self.headers.append(headers)
            chosen = self.next.pop(0) if self.next else self.behaviour
        return chosen(request) if callable(chosen) else chosen


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A server on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, content = server.respond(dict(self.headers), body)
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.end_headers()
            with suppress(OSError):  # the client may have gone
                for piece in content:
                    self.wfile.write(piece)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        server = ModelServer(f"http://127.0.0.1:{listener.server_port}/v1")
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            listener.shutdown()
            thread.join()

"""What is measured: a function for each row of the design's table of budgets.

A row measures one round on one checkout. It yields figures, each with its budget, as soon as it has them, and
rates that have none.

Sections: Figures - Beside other servers - Sizes - Hostile peers - Hub
"""

import json
import math
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlencode

from load import Rate, connections, p99, probe, rate
from servers import MCP_HEADERS, SMALL_SEARCH, BenchError, Lab, Server, ask, control_group, wait_for
from subscribers import Subscribers

# ---- Figures ----

SAMPLE = 0  # for a number of reviews
TOPIC = "/feed.xml"


class Figure(NamedTuple):
    """A number and its budget: a lower bound, or an upper one, infinite where there is no budget."""

    what: str
    value: float
    unit: str
    at_most: float = math.inf
    at_least: float = -math.inf


Findings = Iterator[Figure | Rate]


def named(size: int) -> str:
    """A number of reviews, in words."""
    return f"{size:,} reviews" if size else "sample"


def change(server: Server, data: Path) -> float:
    """Give the business another name and send SIGHUP; the seconds until the service has reloaded."""

    def tag() -> str | None:
        return ask(server.port, "/reviews.json", method="HEAD").headers["ETag"]

    before, draft = tag(), data / "draft"
    draft.write_bytes((data / "reviews.json").read_bytes().replace(b'"name": "', b'"name": "New ', 1))
    draft.rename(data / "reviews.json")
    began = time.monotonic()
    server.process.send_signal(signal.SIGHUP)
    wait_for("reload", lambda: tag() != before)
    return time.monotonic() - began


# ---- Beside other servers ----

UNSEEN_SEARCH = "/api/reviews/search?query=%s&since=%s&min_rating=%d"
QUESTION = ("back", "2023-02-28", 4)
CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_reviews","arguments":%s}}'
UNSEEN_CALL = CALL % '{"query":"%s","since":"%s","min_rating":%d}META'
STATELESS_HEADERS = {"Mcp-Method": "tools/call", "Mcp-Name": "search_reviews"}
STATELESS_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
ERAS = {"2026-07-28": (f',"_meta":{json.dumps(STATELESS_META)}', STATELESS_HEADERS), "2025-11-25": ("", {})}


def fixed(lab: Lab) -> Findings:
    """A 304 and a small fixed GET: a reviews.json of 2 KB."""
    data, files = lab.data(3), lab.scratch / "files"
    with lab.daemon(data) as ours, lab.peer("FastAPI", data) as fastapi:
        files.mkdir()
        (files / "reviews.json").write_bytes(ask(ours.port, "/reviews.json").body)
        with lab.nginx(files) as static:
            for request, status in (("304", 304), ("small fixed GET", 200)):
                rates = []
                for server in (ours, static, fastapi):
                    tag = str(ask(server.port, "/reviews.json").headers["ETag"])
                    headers = {"If-None-Match": tag} if status == 304 else {}
                    if ask(server.port, "/reviews.json", headers=headers).status != status:
                        raise BenchError(f"{server.name} does not answer {status}")
                    rates.append(rate(request, server, lab.seconds, "/reviews.json", headers))
                yield from compared(rates, 0.2, 4)


def search(lab: Lab) -> Findings:
    """A search with an unseen query."""
    return unseen(lab, "unseen search", "FastAPI", {}, UNSEEN_SEARCH)


def mcp(lab: Lab) -> Findings:
    """A call of search_reviews with an unseen query, by clients of both eras."""
    for revision, (meta, more) in ERAS.items():
        headers = MCP_HEADERS | more | {"MCP-Protocol-Version": revision}
        call = UNSEEN_CALL.replace("META", meta)
        yield from unseen(lab, f"tools/call {revision}", "MCP SDK", headers, call, "/mcp")


def unseen(
    lab: Lab, request: str, name: str, headers: dict[str, str], template: str, path: str = ""
) -> Findings:
    """What `load.rate` makes of a template, 500 reviews. Raises BenchError when the answers differ."""
    data, text, rates, found = lab.data(500), template % QUESTION, [], []
    with lab.daemon(data) as ours, lab.peer(name, data) as other:
        for server in (ours, other):
            answer = ask(server.port, path or text, text.encode() if path else None, headers)
            document = json.loads(answer.body)
            result = document["result"]["structuredContent"] if path else document
            found.append([review["id"] for review in result["reviews"]])
            rates.append(rate(request, server, lab.seconds, path or "/", headers, template))
    if found[0] != found[1]:
        raise BenchError(f"{name} does not find the same reviews")
    yield from compared(rates, 5)


def compared(rates: list[Rate], *budgets: float) -> Findings:
    """All rates, and how many times those of the others the first is, with the budgets of these."""
    yield from rates
    for other, budget in zip(rates[1:], budgets, strict=True):
        ratio = rates[0].per_second / other.per_second
        yield Figure(f"{other.request}, to {other.server}", ratio, "×", at_least=budget)


# ---- Sizes ----

COSTLY_QUERIES = (  # by kind
    ("", "", "", "", ""),
    ("e", "t", "a", "o", "n"),
    ("th", "he", "in", "er", "an"),
    ("qz", "qx", "jx", "vq", "zq"),
    ("the", "and", "to", "of", "was"),
    ("and the", "the and", "to the", "e the", "s and"),
    (" ", "  ", ". ", "! ", "s "),
    ("ж", "語", "ß", "é", "ω"),
    tuple("the and " * 24 + letter for letter in "qxzjv"),
)
EVERY_FILTER = {"min_rating": "1", "since": "2000-01-01", "until": "2030-01-01"}
EVERY_FILTER |= {"mentions_technician": "Dr.", "mentions_service": "massage-therapy"}


def worst(lab: Lab) -> Findings:
    """The kind of search with the highest median. Each query is asked once, for one review: cheap to send."""
    for size, budget_ms in ((500, 1), (10_000, 5), (100_000, 60)):
        with lab.daemon(lab.data(size)) as ours:
            highest = 0.0
            for queries in COSTLY_QUERIES:
                for offset, filters in ((0, {}), (size // 2, {}), (0, EVERY_FILTER)):
                    answers = []
                    for number, query in enumerate(queries):
                        parameters = {"query": query, "offset": offset + number, **filters}
                        answers.append(ask(ours.port, f"{SMALL_SEARCH}&{urlencode(parameters)}"))
                    if any(answer.status != 200 for answer in answers):
                        raise BenchError(f"searches for {queries} are not answered")
                    highest = max(highest, median(answer.seconds for answer in answers))
        yield Figure(f"worst search, {named(size)}", highest * 1000, "ms", budget_ms)


def start(lab: Lab) -> Findings:
    """From spawning the process to its first answer."""
    for size, budget in ((SAMPLE, 0.55), (10_000, 1.2), (100_000, 8)):
        with lab.daemon(lab.data(size)) as ours:
            yield Figure(f"start, {named(size)}", ours.start_seconds, "s", budget)


def reload(lab: Lab) -> Findings:
    """From the signal to the new answer, and what callers notice meanwhile."""
    for size, budget in ((500, 0.2), (10_000, 1.2)):
        data = lab.data(size)
        with lab.daemon(data) as ours, probe(ours) as latencies:
            seconds = [change(ours, data) for _ in range(3)]
        yield Figure(f"reload, {named(size)}", median(seconds), "s", budget)
    yield Figure("GET p99 during these reloads", p99(latencies), "ms", 20)
    yield Figure("longest GET during these reloads", max(latencies), "ms", 60)


def memory(lab: Lab) -> Findings:
    """Resident memory after some load, and at the highest of a reload."""
    for size, budget in ((SAMPLE, 75), (10_000, 130), (100_000, 4)):
        data = lab.data(size)
        files_mb = sum((data / name).stat().st_size for name in ("reviews.json", "insights.json")) / 1e6
        unit, unit_mb = ("MB", 1.0) if size < 100_000 else ("× the files", files_mb)
        with lab.daemon(data) as ours:
            for coding in ("identity", "gzip"):
                ask(ours.port, "/reviews.json", headers={"Accept-Encoding": coding})
            rate("load", ours, 1, "/", {}, UNSEEN_SEARCH)
            time.sleep(2)
            yield Figure(f"resident, {named(size)}", ours.memory_mb() / unit_mb, unit, budget)
            if size == 100_000:
                Path(f"/proc/{ours.process.pid}/clear_refs").write_text("5")  # resets VmHWM (proc(5))
                change(ours, data)
                highest = ours.memory_mb("VmHWM") / unit_mb
                yield Figure(f"highest of a reload, {named(size)}", highest, unit, 8)


# ---- Hostile peers ----

BATCH = ("[" + ",".join([CALL % '{"limit":100}'] * 10) + "]").encode()
BATCH_HEADERS = MCP_HEADERS | {"MCP-Protocol-Version": "2025-03-26"}
HALF_HEAD = b"GET /reviews.json HTTP/1.1\r\nHost: bench\r\n"
WHOLE_GET = HALF_HEAD + b"\r\n"
HALF_BODY = (
    b"POST /mcp HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAccept: application/json, "
    b"text/event-stream\r\nMCP-Protocol-Version: 2025-03-26\r\nContent-Length: %d\r\n\r\n" % len(BATCH)
)
WHOLE_BATCH = HALF_BODY + BATCH


def unread(lab: Lab) -> Findings:
    """5,000 connections that ask for the largest answers and read nothing, and 20 for 13 MB each."""
    with control_group(512 * 2**20) as group, lab.daemon(lab.data(SAMPLE), group=group) as ours:
        if ask(ours.port, "/mcp", BATCH, BATCH_HEADERS).status != 200:
            raise BenchError("the batch is not answered")
        before = ours.memory_mb()
        with probe(ours) as latencies, connections(ours, [WHOLE_GET, WHOLE_BATCH] * 2500):
            time.sleep(10)
        where = "a control group of 512 MB" if group else "no control group, since none can be made"
        yield Figure(f"highest with 5,000 unread answers, in {where}", ours.memory_mb("VmHWM"), "MB")
        yield Figure("GET p99 beside them", p99(latencies), "ms", 100)
        deadline = time.monotonic() + 120
        while ours.memory_mb() > before + 60 and time.monotonic() < deadline:
            time.sleep(1)
        yield Figure("memory kept two minutes after they left", ours.memory_mb() - before, "MB", 60)
    with lab.daemon(lab.data(22_800)) as ours:
        before = ours.memory_mb()
        with connections(ours, [WHOLE_GET] * 20):
            time.sleep(3)
            yield Figure("memory for 20 unread answers of 13 MB", ours.memory_mb() - before, "MB")


def slow(lab: Lab) -> Findings:
    """2,000 half-open heads, as many half-sent bodies, and as many idle connections."""
    sent = [HALF_HEAD, HALF_BODY, b""] * 2000
    with lab.daemon(lab.data(SAMPLE)) as ours, connections(ours, sent, 0.0002), probe(ours) as latencies:
        time.sleep(4)
    yield Figure("GET p99 beside 6,000 slow connections", p99(latencies), "ms", 50)


def stop(lab: Lab) -> Findings:
    """From SIGTERM to the end, whatever is open."""
    sent = [HALF_HEAD, HALF_BODY, b"", WHOLE_GET, WHOLE_BATCH] * 300
    with lab.daemon(lab.data(SAMPLE)) as ours, connections(ours, sent):
        yield Figure("stop with all these connections", ours.stop(), "s", 5)
    data = lab.data(500)
    with Subscribers(lab.scratch) as subscribers, lab.daemon(data, *subscribers.flags) as ours:
        subscribers.subscribe(ours.port, [("hanging", number, TOPIC) for number in range(32)])
        change(ours, data)
        wait_for("delivery", lambda: subscribers.events["deliveries to hanging callbacks"] > 0)
        yield Figure("stop with hanging deliveries", ours.stop(), "s", 5)


# ---- Hub ----


def hub(lab: Lab) -> Findings:
    """A change to 500 subscribers under 50 addresses."""
    data = lab.data(500)
    with Subscribers(lab.scratch) as subscribers, lab.daemon(data, *subscribers.flags) as ours:
        subscribers.subscribe(ours.port, [("steady", number, TOPIC) for number in range(500)])
        with probe(ours) as latencies:
            began = time.monotonic()
            change(ours, data)
            newest = ask(ours.port, TOPIC).body
            wait_for("delivery to everyone", lambda: list(subscribers.newest.values()).count(newest) == 500)
            seconds = time.monotonic() - began
    yield Figure("a change to 500 subscribers", seconds, "s", 15)
    yield Figure("GET p99 meanwhile", p99(latencies), "ms", 50)


ROWS = (fixed, search, mcp, worst, start, reload, memory, unread, slow, stop, hub)
MOST_ROUNDS = {worst: 3, start: 3, memory: 3, unread: 1}

"""Whether the answers are right: a fast wrong answer is no figure.

Every check is made before anything is measured, on the very servers that are measured.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from load import BenchError, Client, Request
from mcp_calls import ERAS, MCP_PATH, structured
from peers import Server

Parameters = Mapping[str, str | int]
Summary = tuple[int | None, list[str]]  # how many match, and the ids of those that are shown
OURS_ALONE = {"mentions_technician", "mentions_service"}


def search_path(parameters: Parameters) -> str:
    """The path of a search."""
    return "/api/reviews/search?" + urlencode(parameters)


def check(ours: Server, nginx: Server, fastapi: Server, searches: Sequence[Parameters], day: str) -> None:
    """Compare the three servers of GET. Raises BenchError at the first difference."""
    for headers in ({}, {"Accept-Encoding": "gzip"}):
        if body(ours, "/reviews.json", headers) != body(nginx, "/reviews.json", headers):
            raise BenchError("nginx does not serve the bytes of reviewsd")
        same_reviews(ours, fastapi, "/reviews.json", headers)
    for server in (ours, nginx, fastapi):
        check_not_modified(server)
    for parameters in searches:
        same_reviews(ours, fastapi, search_path(parameters))
    same_reviews(ours, fastapi, f"/api/reviews/since/{day}")


def check_calls(ours: Server, sdk: Server, searches: Sequence[Parameters]) -> None:
    """Compare what tools/call finds, in both generations, where the SDK's server has the parameters."""
    for parameters in searches:
        if parameters.keys() & OURS_ALONE:
            continue
        for era in ERAS:
            arguments = json.dumps(parameters, ensure_ascii=False)
            request = Request(MCP_PATH, era.headers, era.call(arguments))
            left, right = (_call_summary(server, request) for server in (ours, sdk))
            if left != right:
                raise BenchError(
                    f"{ours.name} and {sdk.name} differ on a call with {arguments}:"
                    f" {_brief(left)} and {_brief(right)}"
                )


def _call_summary(server: Server, request: Request) -> Summary:
    with Client(server.port) as client:
        reply = client.send(request)
    try:
        return _summary(structured(reply.body))
    except ValueError as error:
        raise BenchError(f"{server.name}, status {reply.status}: {error}") from None


def current_tag(server: Server, path: str) -> str:
    """The entity tag that a client would hold."""
    with Client(server.port) as client:
        tag: str | None = client.get(path).headers["ETag"]
    if tag is None:
        raise BenchError(f"{server.name} sends no ETag for {path}")
    return tag


def check_not_modified(server: Server) -> None:
    """Whether a client that holds the content is told so."""
    tag = current_tag(server, "/reviews.json")
    with Client(server.port) as client:
        status = client.get("/reviews.json", {"If-None-Match": tag}).status
    if status != 304:
        raise BenchError(f"{server.name} answers {status}, not 304, to its own ETag")


def same_reviews(ours: Server, rival: Server, path: str, headers: Mapping[str, str] | None = None) -> None:
    """Whether both answer with the same reviews in the same order, out of the same number that match."""
    left, right = (_summary(json.loads(body(server, path, headers or {}))) for server in (ours, rival))
    if left != right:
        raise BenchError(f"{ours.name} and {rival.name} differ on {path}: {_brief(left)} and {_brief(right)}")


def body(server: Server, path: str, headers: Mapping[str, str]) -> bytes:
    """The decoded body of a 200 in the coding that was asked for."""
    with Client(server.port) as client:
        reply = client.get(path, headers)
    wanted = headers.get("Accept-Encoding")
    if reply.status != 200 or reply.headers["Content-Encoding"] != wanted:
        coding = reply.headers["Content-Encoding"]
        raise BenchError(
            f"{server.name} answers {path} with {reply.status} and coding {coding}, not {wanted}"
        )
    return gzip.decompress(reply.body) if wanted else reply.body


def _summary(document: Mapping[str, Any]) -> Summary:
    return document.get("matched"), [review["id"] for review in document["reviews"]]


def _brief(summary: Summary) -> str:
    matched, names = summary
    return f"{len(names)} reviews ({', '.join(names[:3])}, …), matched {matched}"

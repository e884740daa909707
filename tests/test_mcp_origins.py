"""Which pages may call the MCP endpoint, and read what it answers.

An origin is compared, not searched: no other page comes in by a name that looks alike.
"""

import json

import pytest
from lab.mcp_requests import BASE_URL, endpoint, header, result, send

from reviewslib.messages import Response

# Our own, those of this machine, and those that the operator allows.
ADMITTED = [BASE_URL, "https://reviews.example:443", "HTTPS://Reviews.Example"]
ADMITTED += ["http://localhost", "http://localhost:6274", "https://127.0.0.1:9103"]
ADMITTED += ["HTTP://LocalHost:6274", "http://[::1]:3000"]
ADMITTED += ["https://app.example", "vscode-webview://panel"]
ALLOWING = endpoint("https://app.example:443", "vscode-webview://panel")

STRANGERS = ["null", "", "*", "https://evil.example"]
# Another scheme or port.
STRANGERS += ["http://reviews.example", "https://reviews.example:8443"]
# Of other schemes than those of the web nobody knows that case does not matter.
STRANGERS += ["vscode-webview://Panel"]
# A known name inside of another one.
STRANGERS += ["https://reviews.example.evil.example"]
STRANGERS += ["https://evil.example/https://reviews.example"]
STRANGERS += ["http://127.0.0.1:9103.evil.example", "http://127.0.0.1.evil.example"]
STRANGERS += ["http://127.0.0.2", "http://localhost.evil.example"]
STRANGERS += ["http://localhost@evil.example", "http://evil.example#localhost"]
# No origin of this machine, though it begins like one.
STRANGERS += ["http://localhost:6274/", "http://localhost\n", "http://localhost:٣"]
STRANGERS += ["http://localhost:", "http://localhost:123456"]
STRANGERS += ["chrome-extension://localhost"]
STRANGERS += ["http://localhost, https://evil.example"]

EXPOSED = "Mcp-Session-Id, MCP-Protocol-Version, Retry-After"
METHODS = ["POST", "GET", "DELETE", "OPTIONS", "HEAD"]


def readers(response: Response) -> list[str | None]:
    """Which pages may read the response, and which fields of it."""
    names = ("Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Vary")
    return [header(response, name) for name in names]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("origin", ADMITTED)
def test_a_known_page_may_call_and_read_every_answer(origin: str, method: str) -> None:
    response = send(method=method, to=ALLOWING, origin=origin)

    assert response.status != 403
    assert readers(response) == [origin, EXPOSED, "Origin"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("origin", STRANGERS)
def test_no_other_page_may_call_or_read(origin: str, method: str) -> None:
    response = send(method=method, to=ALLOWING, origin=origin)

    error = {"code": -32600, "message": "this Origin may not call"}
    assert response.status == 403
    assert json.loads(response.body)["error"] == error
    assert readers(response) == [None, None, "Origin"]


@pytest.mark.parametrize("origin", [*ADMITTED, *STRANGERS])
def test_with_a_star_every_page_may_call(origin: str) -> None:
    response = send(to=endpoint("*"), origin=origin)

    assert result(response) == {}
    assert header(response, "Access-Control-Allow-Origin") == "*"


def test_a_preflight_lets_pages_send_whatever_their_libraries_add() -> None:
    response = send(b"", method="OPTIONS", origin=BASE_URL)

    assert response.status == 204
    assert response.body == b""
    assert readers(response) == [BASE_URL, EXPOSED, "Origin"]
    assert header(response, "Allow") == "POST, OPTIONS"
    assert header(response, "Access-Control-Allow-Methods") == "POST, OPTIONS"
    assert header(response, "Access-Control-Allow-Headers") == "*, Authorization"
    assert header(response, "Access-Control-Max-Age") == "86400"

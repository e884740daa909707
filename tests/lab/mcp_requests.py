"""Messages of MCP in both eras, and an endpoint to send them to.

No socket: an endpoint is called with bytes and header fields.

Sections: messages - the stateless era - sending - reading.
"""

import json
from typing import Any

from lab.mcp_sample import TOOLBOX, Object
from mcp_rpc import McpServer
from reviewslib.messages import Response

HANDSHAKE_VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
NEWEST_FIRST = [STATELESS, *reversed(HANDSHAKE_VERSIONS)]
BASE_URL = "https://reviews.example"
JSON = "application/json"
EVENTS = "text/event-stream"

# ---- Messages ----


def request(method: str, params: Any = None, id: Any = 1) -> Object:
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    return message


def call(tool: str, arguments: Any = None, id: Any = 1) -> Object:
    return request("tools/call", {"name": tool, "arguments": arguments}, id)


def notification(method: str) -> Object:
    return {"jsonrpc": "2.0", "method": method}


PING = request("ping")
# Responses, which only a server sends.
ANSWERED = {"jsonrpc": "2.0", "id": 7, "result": {}}
FAILED = {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}}

# ---- The stateless era ----


def claims(version: Any = STATELESS) -> Object:
    """What a stateless request says of its client."""
    prefix = "io.modelcontextprotocol"
    return {f"{prefix}/protocolVersion": version, f"{prefix}/clientCapabilities": {}}


VERSION_CLAIM, CAPABILITIES_CLAIM = claims()


def stateless(
    method: str, params: Object | None = None, **changes: str | None
) -> Object:
    """The arguments of `send` for a correct request.

    `changes` are of header fields; None leaves one out.
    """
    claiming = {"_meta": claims()} | (params or {})
    mirrored = {
        "mcp_protocol_version": STATELESS,
        "mcp_method": method,
        "mcp_name": claiming.get("name"),
    }
    return {"body": request(method, claiming)} | mirrored | changes


# ---- Sending ----


def endpoint(*origins: str) -> McpServer:
    return McpServer(BASE_URL, origins, "1.0.0")


ENDPOINT = endpoint()


def send(
    body: Any = PING,
    *,
    method: str = "POST",
    to: McpServer = ENDPOINT,
    **headers: str | None,
) -> Response:
    """The response to `body`, which is encoded unless it is bytes.

    Names of `headers` have `_` for `-`.
    """
    fields: dict[str, str | None] = {
        "content-type": JSON,
        "accept": f"{JSON}, {EVENTS}",
    }
    for name, value in headers.items():
        fields[name.replace("_", "-")] = value
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return to.handle(method, fields.get, sent, TOOLBOX)


def handshake(version: str = "2025-06-18", **headers: str | None) -> Response:
    params = {"protocolVersion": version, "capabilities": {}}
    return send(request("initialize", params), **headers)


# ---- Reading ----


def result(response: Response, id: Any = 1) -> Object:
    """The result of a response that is one."""
    whole: Object = json.loads(response.body)
    assert response.status == 200
    assert whole == {"jsonrpc": "2.0", "id": id, "result": whole.get("result")}
    outcome: Object = whole["result"]
    return outcome


def header(response: Response, name: str) -> str | None:
    return dict(response.headers).get(name)

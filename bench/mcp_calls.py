"""Calls of the tool search_reviews, as MCP clients of both generations send them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MCP_PATH = "/mcp"
SHARED_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@dataclass(frozen=True, slots=True)
class Era:
    """A generation of clients: what its calls have besides name and arguments."""

    version: str
    headers: Mapping[str, str]
    meta: str  # the text behind `arguments`

    def call(self, arguments: str) -> str:
        """The body of a call; `arguments` is a JSON object."""
        tool = f'"name":"search_reviews","arguments":{arguments}{self.meta}'
        return f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{tool}}}}}'


HANDSHAKE = Era("2025-11-25", SHARED_HEADERS | {"MCP-Protocol-Version": "2025-11-25"}, "")
STATELESS = Era(
    "2026-07-28",
    SHARED_HEADERS
    | {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "search_reviews"},
    ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    '"io.modelcontextprotocol/clientCapabilities":{},'
    '"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}',
)
ERAS = (STATELESS, HANDSHAKE)


def structured(answer: bytes) -> dict[str, Any]:
    """What a call found. Raises ValueError when it was not served."""
    message = json.loads(answer)
    result = message.get("result", {})
    if result.get("isError") or "structuredContent" not in result:
        raise ValueError(f"the call was not served: {answer[:300].decode(errors='replace')}")
    content: dict[str, Any] = result["structuredContent"]
    return content

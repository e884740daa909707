"""Talk to an MCP endpoint with the official Python SDK of generation 1: `client_v1.py URL`.

Prints one JSON line about the handshake and the tools; then, for each JSON line `{"tool", "arguments"}` read
from standard input, one with what the call gave. Ends, and ends its session, with its input.
"""

import json
import sys
from typing import Any

import anyio
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamable_http_client


async def main(url: str) -> None:
    async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
        handshake = await session.initialize()
        listed = await session.list_tools()
        say(
            {
                "version": handshake.protocolVersion,
                "server": handshake.serverInfo.name,
                "instructions": handshake.instructions,
                "tools": [tool.name for tool in listed.tools],
            }
        )
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            asked = json.loads(line)
            try:
                called = await session.call_tool(asked["tool"], asked["arguments"])
            except McpError as refused:
                say({"code": refused.error.code, "message": refused.error.message})
            else:
                texts = [block.text for block in called.content if block.type == "text"]
                say({"isError": called.isError, "texts": texts, "structured": called.structuredContent})


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


anyio.run(main, sys.argv[1])

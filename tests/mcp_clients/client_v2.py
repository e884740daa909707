"""Talk to an MCP endpoint with the official Python SDK of generation 2: `client_v2.py URL MODE`.

`MODE` is `auto` (stateless if the server can) or `legacy` (with a handshake). Prints one JSON line about the
server and its tools; then, for each JSON line `{"tool", "arguments"}` read from standard input, one with what
the call gave. Ends with its input.
"""

import json
import sys
from typing import Any

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPError


async def main(url: str, mode: str) -> None:
    async with Client(url, mode=mode) as client:
        listed = await client.list_tools()
        say(
            {
                "version": client.protocol_version,
                "server": client.server_info.name if client.server_info else None,
                "instructions": client.instructions,
                "tools": [tool.name for tool in listed.tools],
            }
        )
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            asked = json.loads(line)
            try:
                called = await client.call_tool(asked["tool"], asked["arguments"])
            except MCPError as refused:
                say({"code": refused.error.code, "message": refused.error.message})
            else:
                texts = [block.text for block in called.content if block.type == "text"]
                say({"isError": called.is_error, "texts": texts, "structured": called.structured_content})


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


anyio.run(main, *sys.argv[1:])

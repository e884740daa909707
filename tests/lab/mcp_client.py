"""Talk to an MCP endpoint with the official Python SDK: `mcp_client.py URL [MODE]`.

Generation 2 of the SDK takes a `MODE`: `auto` (stateless if the server can) or `legacy`
(with a handshake). Prints one JSON line about the server and its tools; then, for each
JSON line `{"tool", "arguments"}` read from standard input, one with what the call gave.
Ends with its input.
"""

import json
import sys
from typing import Any

import anyio
import mcp
from mcp.shared import exceptions

ProtocolError = (
    exceptions.MCPError if hasattr(exceptions, "MCPError") else exceptions.McpError
)


async def main(url: str, *mode: str) -> None:
    if mode:
        async with mcp.Client(url, mode=mode[0]) as client:
            await converse(
                client,
                version=client.protocol_version,
                server=client.server_info.name,
                instructions=client.instructions,
            )
        return
    from mcp.client.streamable_http import streamable_http_client

    async with (
        streamable_http_client(url) as (read, write, _),
        mcp.ClientSession(read, write) as session,
    ):
        agreed = await session.initialize()
        await converse(
            session,
            version=agreed.protocolVersion,
            server=agreed.serverInfo.name,
            instructions=agreed.instructions,
        )


async def converse(
    client: Any, *, version: str, server: str, instructions: str
) -> None:
    tools = [tool.name for tool in (await client.list_tools()).tools]
    say(
        {
            "version": version,
            "server": server,
            "instructions": instructions,
            "tools": tools,
        }
    )
    while line := await anyio.to_thread.run_sync(sys.stdin.readline):
        asked = json.loads(line)
        try:
            result = await client.call_tool(asked["tool"], asked["arguments"])
        except ProtocolError as refused:
            say({"code": refused.error.code, "message": refused.error.message})
        else:
            say(brief(result.model_dump(mode="json", by_alias=True)))


def brief(called: dict[str, Any]) -> dict[str, Any]:
    """What a call gave, in the names of this program."""
    texts = [block["text"] for block in called["content"] if block["type"] == "text"]
    return {
        "isError": called["isError"],
        "texts": texts,
        "structured": called["structuredContent"],
    }


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


anyio.run(main, *sys.argv[1:])

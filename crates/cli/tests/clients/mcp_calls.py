"""Calls Towline's tools with the official client of MCP, and prints what it got as JSON.

URL and TOKEN: the server over HTTP. Without URL: the program TOWLINE on standard input and output.
CALLS: a list of tools with their arguments.
"""

import asyncio
import json
import os

import httpx2
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


statuses = set()


async def note(reply):
    statuses.add(f"{reply.request.method} {reply.status_code}")


def over_http():
    headers = {"Authorization": "Bearer " + os.environ["TOKEN"]}
    http = httpx2.AsyncClient(headers=headers, timeout=30, event_hooks={"response": [note]})
    return streamable_http_client(os.environ["URL"], http_client=http)


def on_stdio():
    given = {name: value for name, value in os.environ.items() if name.startswith("TOWLINE_")}
    return stdio_client(StdioServerParameters(command=os.environ["TOWLINE"], args=["mcp"], env=given))


def transport():
    return over_http() if "URL" in os.environ else on_stdio()


async def call(client, got):
    got["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    for name, arguments in json.loads(os.environ["CALLS"]):
        result = await client.call_tool(name, arguments)
        got["results"].append([result.content[0].text, result.is_error])


async def main(got):
    # The handshake, step by step.
    async with transport() as streams, ClientSession(*streams[:2]) as session:
        begun = await session.initialize()
        got["server"] = begun.server_info.name
        got["protocol"] = begun.protocol_version
        await session.send_ping()
        await call(session, got)
    # The same as programs write it: the client finds out what the server speaks.
    async with Client(transport()) as client:
        got["listed_again"] = [tool.name for tool in (await client.list_tools()).tools]


got = {"results": []}
try:
    asyncio.run(main(got))
except BaseException as error:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    got["error"] = f"{type(error).__name__}: {error}"
got["statuses"] = sorted(statuses)
print(json.dumps(got))

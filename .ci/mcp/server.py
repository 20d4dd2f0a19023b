"""A server of tools on the SDK that others wrote, which speaks the newest protocol: over pipes, or with `http` on a free port."""

import sys
from typing import Annotated

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit
from mcp.server.mcpserver.resolve import Resolve
from pydantic import BaseModel

server = MCPServer("sdk")


class City(BaseModel):
    city: str


class Weather(BaseModel):
    city: str
    degrees: int


async def ask_city() -> Elicit[City]:
    return Elicit("Which city?", City)


@server.tool()
def weather(city: str) -> Weather:
    """The weather in a city."""
    return Weather(city=city, degrees=len(city))


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and reports each number."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to)
    return f"counted to {to}"


@server.tool()
def trip(days: int, where: Annotated[City, Resolve(ask_city)]) -> str:
    """Plans a trip to a city that a person names."""
    return f"{days} days in {where.city}"


@server.tool()
def version(ctx: Context) -> str:
    """The version of the protocol."""
    return str(ctx.protocol_version)


@server.tool()
def broken() -> str:
    """Always fails."""
    raise ValueError("out of order")


@server.tool()
async def slow(ctx: Context) -> str:
    """Takes a minute."""
    await ctx.report_progress(0, 1)
    await anyio.sleep(60)
    return "done"


async def serve_http() -> None:
    import socket

    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        anyio.run(serve_http)
    else:
        server.run()

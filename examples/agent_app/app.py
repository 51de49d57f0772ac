# An agent in a web page: it searches, asks a person before it publishes, and is shown while it works. Kill it at any
# time and start it again: it continues, and so does the page.
#
#     pip install "weft[llm]" && uvicorn app:app     (the model: ollama run llama3, or MODEL_URL=...)

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.json import encode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import weft

MODELS = {"local": os.environ.get("MODEL_URL", "http://127.0.0.1:11434/v1")}


@weft.step(effect="read")
async def search(query: str) -> list[str]:
    """Search the archive."""
    return [f"{query}, part {n}" for n in (1, 2)]


@weft.step(approve=True)
async def publish(text: str) -> str:
    """Publish a text for everyone."""
    return f"published {len(text)} letters"


@weft.durable
async def research(question: str) -> str:
    return await weft.agent("local:llama3", question, tools=[search, publish])


@asynccontextmanager
async def opened(app: Starlette) -> AsyncGenerator[None]:
    async with weft.open("agent.db", workflows=[research], models=MODELS) as app.state.engine:
        yield


async def ask(request: Request) -> Response:
    return JSONResponse((await request.app.state.engine.submit(research, question=(await request.body()).decode())).run)


async def answer(request: Request) -> Response:
    await request.app.state.engine.answer(**request.path_params)
    return Response()


async def events(request: Request) -> Response:
    shown = request.app.state.engine.follow(request.path_params["run"], text=True)
    return StreamingResponse((b"data: %s\n\n" % encode(e) async for e in shown), media_type="text/event-stream")


ROUTES = [
    Route("/", lambda request: FileResponse(Path(__file__).with_name("page.html"))),
    Route("/ask", ask, methods=["POST"]),
    Route("/events/{run}", events),
    Route("/answer/{run}/{node}/{action}", answer, methods=["POST"]),
]
app = Starlette(routes=ROUTES, lifespan=opened)

"""pydantic-ai with OpenAI's models, on Chat Completions or on Responses."""

import asyncio
import sys

from documents import Document
from lines import serve
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from openai import AsyncOpenAI

MODEL = OpenAIChatModel if sys.argv[1] == "chat" else OpenAIResponsesModel


async def answered(case: dict) -> dict:
    calls = []

    def save_note(path: str, text: str) -> str:
        """Saves a note."""
        calls.append(["save_note", {"path": path, "text": text}])
        return f"{path} {case['result']}"

    client = AsyncOpenAI(base_url=case["base_url"], api_key="not-needed", max_retries=0)
    model = MODEL(case["model"], provider=OpenAIProvider(openai_client=client))
    is_document = case["kind"] == "document"
    tools = [] if case["kind"] in ("text", "document") else [save_note]
    agent = Agent(model, output_type=NativeOutput(Document) if is_document else str, tools=tools, retries=0)

    async def listen(_context, events) -> None:
        async for _ in events:
            pass

    # `run_stream` treats the first text as the end, even if calls follow it in the same reply.
    output = (await agent.run(case["prompt"], event_stream_handler=listen if case["stream"] else None)).output
    await client.close()
    return {"text": "", "calls": calls, "value": output.model_dump()} if is_document else {"text": output, "calls": calls}


serve(lambda case: asyncio.run(answered(case)), Exception)

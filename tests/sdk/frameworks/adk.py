"""Google's Agent Development Kit, on Gemini's format."""

import asyncio
import json
import os

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types
from documents import Document
from lines import serve


async def answered(case: dict) -> dict:
    calls, text = [], ""

    def save_note(path: str, text: str) -> dict:
        """Saves a note."""
        calls.append(["save_note", {"path": path, "text": text}])
        return {"result": f"{path} {case['result']}"}

    os.environ["GOOGLE_API_KEY"] = "not-needed"
    is_document = case["kind"] == "document"
    model = Gemini(model=case["model"], base_url=case["base_url"], retry_options=types.HttpRetryOptions(attempts=1))
    agent = LlmAgent(
        name="scribe", model=model, output_schema=Document if is_document else None,
        tools=[] if case["kind"] in ("text", "document") else [save_note],
    )  # fmt: skip
    runner = InMemoryRunner(agent=agent, app_name="frameworks")
    session = await runner.session_service.create_session(app_name="frameworks", user_id="u")
    asked = types.Content(role="user", parts=[types.Part(text=case["prompt"])])
    mode = StreamingMode.SSE if case["stream"] else StreamingMode.NONE
    async for event in runner.run_async(
        user_id="u", session_id=session.id, new_message=asked, run_config=RunConfig(streaming_mode=mode)
    ):
        if event.error_code:
            raise ValueError(f"{event.error_code}: {event.error_message}")
        # The parts of a stream are partial events. An event with the whole reply follows them.
        if not event.partial and event.content:
            text = "".join(part.text or "" for part in event.content.parts or [])
    return {"text": "", "calls": [], "value": json.loads(text)} if is_document else {"text": text, "calls": calls}


serve(lambda case: asyncio.run(answered(case)), Exception)

"""LangChain with models of OpenAI or Anthropic. The application itself runs the tools."""

import sys

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from documents import Document
from lines import serve
from pydantic import BaseModel

API = sys.argv[1]


class save_note(BaseModel):  # noqa: N801
    """Saves a note."""

    path: str
    text: str


def made(case: dict):
    common = {"model": case["model"], "api_key": "not-needed", "max_retries": 0}
    if API == "anthropic":
        return ChatAnthropic(base_url=case["base_url"].removesuffix("/v1"), **common)
    return ChatOpenAI(base_url=case["base_url"], use_responses_api=API == "responses", **common)


def ask(case: dict) -> dict:
    model, calls = made(case), []
    if case["kind"] == "document":
        structured = model.with_structured_output(Document, method="json_schema")
        if not case["stream"]:
            return {"text": "", "calls": [], "value": structured.invoke(case["prompt"]).model_dump()}
        *_, last = structured.stream(case["prompt"])
        return {"text": "", "calls": [], "value": last.model_dump()}
    if case["kind"] != "text":
        model = model.bind_tools([save_note])
    messages = [HumanMessage(case["prompt"])]
    for _ in range(case["steps"]):
        if case["stream"]:
            reply = None
            for chunk in model.stream(messages):
                reply = chunk if reply is None else reply + chunk
        else:
            reply = model.invoke(messages)
        messages.append(reply)
        # LangChain collects calls with invalid JSON here without raising. An application that ignores them stops too early.
        if reply.invalid_tool_calls:
            raise ValueError(f"invalid tool calls: {reply.invalid_tool_calls}")
        if not reply.tool_calls:
            break
        for call in reply.tool_calls:
            calls.append([call["name"], call["args"]])
            messages.append(ToolMessage(f"{call['args']['path']} {case['result']}", tool_call_id=call["id"]))
    return {"text": reply.text, "calls": calls}


serve(ask, Exception)

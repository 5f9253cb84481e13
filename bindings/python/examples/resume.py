"""Resumes a cut reply, logs it, and stays within a budget. A function takes the place of a real client."""

from __future__ import annotations

import endmark

DOCUMENT = '{"files": ["a.rs", "b.rs"], "reason": "both read the request before it is checked"}'


def client(messages: list[dict[str, object]]) -> endmark.Reply:
    """Answers with at most 60 characters, like a model with a low output limit."""
    shown = "" if len(messages) == 1 else str(messages[1]["content"])
    rest = DOCUMENT[len(shown) :]
    return endmark.Reply(rest[:60], "stop" if len(rest) <= 60 else "length")


def main() -> None:
    history: list[dict[str, object]] = [{"role": "user", "content": "Which files are wrong? Answer in JSON."}]
    meter = endmark.Meter(max_tokens=10_000)

    def ask(asked: endmark.Ask) -> endmark.Reply:
        with meter.call("gpt-5", prompt_tokens=100, max_output_tokens=500) as call:
            reply = client(asked.messages(history))
            call.text = reply.text
        return reply

    with endmark.Log(":memory:") as log:
        outcome = endmark.resume_if_truncated(ask, client(history), "json", max_attempts=5, log=log)
    print(outcome.text)
    print(f"{outcome.result} after {outcome.attempts} continuations, {meter.usage().tokens.completion} tokens generated")


if __name__ == "__main__":
    main()

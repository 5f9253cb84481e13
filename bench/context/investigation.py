"""Measures what compaction keeps of an investigation in logs: calls, hypotheses, and values that occur once, often,
or again later.

    python3 bench/context/investigation.py --command target/release/endmark
"""

import argparse
import json
import random
import subprocess

SERVICES = ("checkout", "ledger", "search", "mailer", "gate")
# The form of ids in each kind of system.
SHAPES = (
    lambda chosen: f"{chosen.getrandbits(128):032x}",
    lambda chosen: f"req-{chosen.randrange(10**8):08d}",
    lambda chosen: "01H" + "".join(chosen.choice("0123456789ABCDEFGHJKMNPQRSTVWXYZ") for _ in range(23)),
    lambda chosen: f"{chosen.getrandbits(32):08x}-{chosen.getrandbits(16):04x}",
)


def result(chosen, service, rows):
    lines = []
    for _ in range(rows):
        moment = f"2026-03-{chosen.randrange(1, 29):02d}T{chosen.randrange(24):02d}:{chosen.randrange(60):02d}:{chosen.random() * 60:06.3f}Z"
        level = chosen.choices(("INFO", "WARN", "ERROR"), (90, 8, 2))[0]
        lines.append(f"{moment} {level} {service} trace={chosen.choice(SHAPES)(chosen)} took {chosen.randrange(900)} ms")
    return "\n".join(lines)


def investigation(steps, rows, seed):
    chosen = random.Random(seed)
    messages = [{"role": "user", "content": "Find out why orders were charged twice on 3 March. Never restart the ledger."}]
    calls, thoughts = [], []
    for step in range(steps):
        service, suspect = chosen.choice(SERVICES), chosen.choice(SHAPES)(chosen)
        query = f"service={service} severity>=ERROR suspect={suspect}"
        thoughts.append(f"Hypothesis {step}: {service} repeats the charge of {suspect}.")
        calls.append(suspect)
        call = {"id": f"c{step}", "type": "function", "function": {"name": "query_logs", "arguments": json.dumps({"query": query})}}
        messages.append({"role": "assistant", "content": thoughts[-1], "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": result(chosen, service, rows)})
    messages.append({"role": "assistant", "content": "The ledger acknowledged late."})
    return messages, calls, thoughts


def peers(messages, most):
    """Returns what peers keep within the same number of tokens, if they are installed (`pip install langchain
    headroom-ai`).
    """
    try:
        from langchain_core.messages import convert_to_messages, trim_messages
    except ImportError:
        pass
    else:
        kept = trim_messages(convert_to_messages(messages), max_tokens=most, token_counter="approximate", start_on=("human", "ai"))
        yield f"LangChain trim_messages, {most} tokens", json.dumps([[str(one.content), getattr(one, "tool_calls", [])] for one in kept], ensure_ascii=False)
    try:
        from headroom import compress
    except ImportError:
        pass
    else:
        kept = compress(messages, model="gpt-4o")
        yield "headroom compress", json.dumps(getattr(kept, "messages", kept), ensure_ascii=False, default=str)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default="target/release/endmark")
    parser.add_argument("--steps", type=int, default=145)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    messages, calls, thoughts = investigation(arguments.steps, arguments.rows, arguments.seed)
    body = json.dumps({"messages": messages})
    for mode in (["--mode", "window"], ["--mode", "emergency"], ["--keep-share", "0.35"], ["--keep-share", "0.2"]):
        command = [arguments.command, "compact", "--for", "openai_chat", "--no-store", "--json", *mode]
        answer = json.loads(subprocess.run(command, input=body, capture_output=True, text=True, check=True).stdout)["data"]
        text, receipt = json.dumps(answer["request"], ensure_ascii=False), answer["receipt"]
        kept = {name: sum(value in text for value in values) for name, values in (("calls", calls), ("hypotheses", thoughts))}
        last = answer["request"]["messages"] if isinstance(answer["request"], dict) else answer["request"]
        task = messages[0]["content"] in json.dumps(last, ensure_ascii=False)
        print(
            " ".join(mode), f"{receipt['tokens_before']} -> {receipt['tokens_after']} tokens; task {'kept' if task else 'lost'};",
            ", ".join(f"{name} {count} of {arguments.steps}" for name, count in kept.items()), "; receipt:", receipt["anchors"],
        )
    for name, text in peers(messages, receipt["tokens_before"] * 35 // 100):
        kept = [f"{kind} {sum(value in text for value in values)} of {arguments.steps}" for kind, values in (("calls", calls), ("hypotheses", thoughts))]
        task = "kept" if json.dumps(messages[0]["content"])[1:-1] in text else "lost"
        print(f"{name}: {len(text)} characters; task {task}; {', '.join(kept)}")


if __name__ == "__main__":
    main()

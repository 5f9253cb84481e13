"""Runs the shared cases of all languages: equal inputs yield equal bytes."""

import json
from pathlib import Path

import pytest

from endmark import _native

CASES = json.loads((Path(__file__).resolve().parents[2] / "cases.json").read_text("utf-8"))


def shown(function, *arguments):
    try:
        return {"answer": function(*arguments)}
    except _native.NativeError as error:
        return {"failure": str(error)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_case_yields_its_answer(case):
    options = json.dumps(case["options"], ensure_ascii=False, separators=(",", ":"))
    if "class" not in case:
        found = shown(_native.call, case["function"], case["inputs"], options)
        assert found == case["expected"]
        return
    made = _native.Stateful(case["class"], case["inputs"], options)
    answers = [shown(made.call, step["method"], step["inputs"], json.dumps(step["options"])) for step in case["calls"]]
    assert answers == case["expected"]["answers"]


def test_bytes_and_texts_yield_the_same_result():
    for case in CASES:
        if "function" in case:
            options = json.dumps(case["options"])
            as_bytes = [text.encode() for text in case["inputs"]]
            assert shown(_native.call, case["function"], as_bytes, options) == shown(_native.call, case["function"], case["inputs"], options)

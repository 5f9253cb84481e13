"""Tests the functions of the package."""

import ast
import doctest
import importlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import endmark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TEXTS = st.one_of(st.text(), st.text(alphabet='[]{}",:0123456789ab \n\\é😀', max_size=60), st.text(alphabet="\ud800\udfffa\"[{"))
FORMATS = st.sampled_from(["json", "jsonl", "markdown", "tags", "text", "auto"])


@pytest.mark.parametrize("module", ["_texts", "_recovery", "_context", "_guard", "findings", "envelope"])
def test_every_example_in_a_docstring_is_correct(module):
    failed, tried = doctest.testmod(importlib.import_module(f"endmark.{module}"))
    assert failed == 0 and tried > 0


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, FORMATS)
def test_functions_raise_only_documented_errors_for_any_text(one, two, format):
    for function in [
        lambda: endmark.detect(one, format), lambda: endmark.complete(one, format), lambda: endmark.merge_chunks(one, two, format),
        lambda: endmark.stitch(one, two, format=format), lambda: endmark.cap(one, max_chars=80), lambda: endmark.guard(one),
        lambda: endmark.findings.merge({"a": one, "b": two}), lambda: endmark.read(one, grep=two),
        lambda: endmark.compact(one, "openai_chat"), lambda: endmark.count(one, two),
        lambda: endmark.build_resume_prompt(one, template=two),
    ]:  # fmt: skip
        try:
            function()
        except endmark.InternalError:
            raise
        except endmark.EndmarkError:
            pass


@settings(max_examples=60, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)), st.data())
def test_offsets_index_the_text_and_no_cut_document_is_malformed(value, data):
    document = json.dumps(value, ensure_ascii=False)
    document = document.encode("utf-8", "replace").decode()
    text = document[: data.draw(st.integers(0, len(document)))]
    found, of_bytes = endmark.detect(text, "json"), endmark.detect(text.encode(), "json")
    assert found.verdict == of_bytes.verdict != "malformed"
    if found.truncation_index is not None:
        assert text[: found.truncation_index].encode() == text.encode()[: of_bytes.truncation_index]


def test_a_lone_surrogate_counts_as_one_code_point():
    found = endmark.detect('["\ud83d", "x', "json")
    assert (found.verdict, found.truncation_index) == ("truncated", 8)


def kept(text):
    outputs = endmark.Outputs()
    return outputs.get(endmark.cap(text * 200, max_chars=100, outputs=outputs).handle)


def refused(function):
    try:
        return function()
    except endmark.EndmarkError as error:
        return type(error), str(error), error.code


MESSAGES = {"model": "gpt-5", "messages": [{"role": "user", "content": "Look."}]}
TEXT_ARGUMENTS = {
    "detect": lambda half: endmark.detect(f'["{half}', "json"),
    "marker": lambda half: endmark.detect("done", "marker", marker=half),
    "template": lambda half: endmark.build_resume_prompt("a", template=half + "{last_valid_token}"),
    "merge_chunks": lambda half: endmark.merge_chunks(f'["{half}", 1', ", 2]", asked_from="cut"),
    "cap": lambda half: endmark.cap(half + "x" * 900, max_chars=100),
    "kept": kept,
    "grep": lambda half: endmark.read(f"a\n{half}\n", grep=half).text,
    "handle": lambda half: endmark.Outputs().get(half),
    "handle in a file": lambda half: endmark.Outputs(":memory:").get(half),
    "compact": lambda half: endmark.compact({**MESSAGES, "user": half}, "openai_chat"),
    "count": lambda half: endmark.count({**MESSAGES, "user": half}, half, format="openai_chat"),
    "guard": lambda half: endmark.guard("# Plan\n\nWe ship.", name=half, required_sections=[f"a{half}"]),
    "findings": lambda half: endmark.findings.plan({half: half}, {"agents": [{"agent_id": half, "dimensions": [half]}]}),
    "envelope": lambda half: endmark.envelope.document({half: half}, error=endmark.envelope.CommandFailed("no", half)),
    "model": lambda half: endmark.Meter(max_usd=1.0).before_call(half, prompt_tokens=1, max_output_tokens=1),
    "stop": lambda half: endmark.stop_meaning(half),
    "prompt": lambda half: endmark.Pipeline(prompt=half).run(lambda ask: endmark.Reply(""), endmark.Reply(half, "length")),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXT_ARGUMENTS)
def test_a_lone_surrogate_becomes_the_replacement_character(name):
    function = TEXT_ARGUMENTS[name]
    assert refused(lambda: function("\ud83d")) == refused(lambda: function("\ufffd"))
    # Two lone surrogates are never one character.
    assert refused(lambda: function("\ud83d\ude00")) == refused(lambda: function("\ufffd\ufffd"))


def test_a_wrong_type_raises_an_error_that_names_the_argument():
    for value in [None, 7, bytearray(b"[]"), ["a"]]:
        with pytest.raises(TypeError, match="`text`: expected str or bytes"):
            endmark.detect(value, "json")
    with pytest.raises(TypeError, match="`continuation`: "):
        endmark.merge_chunks("{", None)
    with pytest.raises(TypeError, match="`parts`: "):
        endmark.stitch("{", "1", None)


@pytest.mark.parametrize(
    ("name", "function"),
    [("max_chars", lambda: endmark.cap("x", max_chars="9")), ("max_chars", lambda: endmark.cap("x", max_chars=-1)),
     ("max_items", lambda: endmark.cap("x", max_items=1.5)), ("keep", lambda: endmark.cap("x", keep="middle")),
     ("max_chars", lambda: endmark.cap("x", max_chars=object())), ("marker", lambda: endmark.detect("x", "marker", marker=7)),
     ("asked_from", lambda: endmark.merge_chunks("{", "}", asked_from="here")), ("format", lambda: endmark.detect("x", "yaml")),
     ("format", lambda: endmark.compact("{}", "yaml")), ("max_tokens", lambda: endmark.Meter(max_tokens=-1)),
     ("max_usd", lambda: endmark.Meter(max_usd="1")), ("max_usd", lambda: endmark.Meter(max_usd=float("nan"))),
     ("prompt_tokens", lambda: endmark.Meter().before_call("m", prompt_tokens=2**64, max_output_tokens=1)),
     ("initial", lambda: endmark.merge_chunks(b"\xff", "}")), ("request", lambda: endmark.compact({"a": object()}, "openai_chat")),
     ("max_attempts", lambda: endmark.Pipeline(max_attempts=-1).run(print, endmark.Reply("{", "length"))),
     ("restart", lambda: endmark.Pipeline(restart="no").run(print, endmark.Reply("{", "length"))),
     ("stop", lambda: endmark.stop_meaning(7)), ("reply.limit", lambda: endmark.Pipeline().run(print, endmark.Reply("{", "stop", limit=-1))),
     ("max_response_bytes", lambda: endmark.envelope.document(max_response_bytes=10)),
     ("data", lambda: endmark.envelope.document(object())), ("findings", lambda: endmark.findings.estimate(-1, 9))],
)  # fmt: skip
def test_an_error_about_an_argument_names_it(name, function):
    with pytest.raises(endmark.InvalidInput, match=f"`{name}`"):
        function()


def test_a_detection_is_neither_true_nor_false():
    with pytest.raises(TypeError):
        assert endmark.detect("[]", "json")


def test_a_failed_merge_contains_everything_received():
    with pytest.raises(endmark.MergeError) as raised:
        endmark.merge_chunks("[1, 2", "3]")
    assert (raised.value.code, raised.value.attempt, raised.value.verified_len) == ("ambiguous", "[1, 23]", 5)


def test_other_threads_run_while_a_function_works():
    text = "[" + "1, " * 700_000
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    threading.Thread(target=tick, daemon=True).start()
    begun = time.monotonic()
    while time.monotonic() - begun < 0.5:
        endmark.detect(text, "json")
    stop.set()
    assert len(ticks) > 20, len(ticks)


def test_eight_threads_share_a_meter_and_get_the_same_answers():
    meter = endmark.Meter(max_tokens=100_000)
    admitted, refused, wrong = [], [], []

    def work():
        for _ in range(50):
            try:
                call = meter.before_call("gpt-5", prompt_tokens=900, max_output_tokens=500)
            except endmark.NotAdmitted:
                refused.append(1)
                continue
            if endmark.stitch('{"a": [1, 2', ", 3, ", "4]}", format="json", asked_from="cut").text != '{"a": [1, 2, 3, 4]}':
                wrong.append(1)
            meter.after_call(call, endmark.Tokens(prompt=900, completion=500))
            admitted.append(call.is_closing)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    usage = meter.usage()
    assert not wrong and refused and sum(admitted) == 1
    assert usage.held_tokens == 0 and usage.tokens.prompt + usage.tokens.completion <= 101_400


def test_a_call_of_another_meter_is_refused():
    call = endmark.Meter().before_call("gpt-5", prompt_tokens=1, max_output_tokens=1)
    with pytest.raises(endmark.InvalidInput):
        endmark.Meter().after_call(call)


def test_a_metered_block_that_reports_nothing_is_not_charged():
    meter = endmark.Meter(max_tokens=5_000)
    with meter.call("gpt-5", prompt_tokens=900, max_output_tokens=500) as call:
        call.tokens = endmark.Tokens(prompt=900, completion=10)
    with pytest.raises(KeyError), meter.call("gpt-5", prompt_tokens=900, max_output_tokens=500):
        raise KeyError("the line is dead")
    assert (meter.usage().calls, meter.usage().tokens_left) == (1, 4_090)


def test_a_meter_reads_the_budget_from_the_environment(monkeypatch):
    monkeypatch.setenv("SRE_AGENT_TOKEN_BUDGET", "850,000")
    assert endmark.Meter.from_environment().usage().tokens_left == 850_000
    monkeypatch.setenv("ENDMARK_TOKEN_BUDGET", "1_000")
    assert endmark.Meter.from_environment().usage().tokens_left == 1_000
    monkeypatch.setenv("ENDMARK_TOKEN_BUDGET", "much")
    with pytest.raises(endmark.InvalidInput, match="ENDMARK_TOKEN_BUDGET"):
        endmark.Meter.from_environment()


@pytest.mark.parametrize("in_file", [False, True])
def test_all_of_a_capped_result_can_be_read_again(tmp_path, in_file):
    output = "".join(f"row {row}: {'error: disk full' if row == 70_000 else 'ok'}\n" for row in range(100_000))
    outputs = endmark.Outputs(str(tmp_path / "outputs.db") if in_file else None)
    capped = endmark.cap(output, max_chars=2_000, outputs=outputs)
    assert "row 70000: error: disk full" in capped.text and f"endmark_read {capped.handle}" in capped.text
    assert len(capped.text) <= 2_000 and capped.warnings[0]["original_bytes"] == len(output)
    if in_file:
        outputs = endmark.Outputs(str(tmp_path / "outputs.db"))
    assert outputs.get(capped.handle).decode() == output
    assert outputs.read({"handle": capped.handle, "lines": "12:13"}) == "row 11: ok\nrow 12: ok\n"
    for arguments in [{"handle": "0" * 16}, {}, "{", "[]", None, {"handle": capped.handle, "page": float("nan")}]:
        with pytest.raises(endmark.InvalidInput):
            outputs.read(arguments)


@pytest.mark.parametrize("in_file", [False, True])
def test_the_least_recently_used_outputs_are_removed(tmp_path, in_file):
    outputs = endmark.Outputs(str(tmp_path / "outputs.db") if in_file else None, max_bytes=250)
    for handle in "abc":
        outputs.keep(handle, handle.encode() * 100)
        time.sleep(0.002)
    with pytest.raises(endmark.InvalidInput):
        outputs.get("a")
    assert outputs.get("c") == b"c" * 100


def test_a_team_report_always_discloses_its_cuts():
    cut = "===AGENT_RESULT===\nagent_id: auth-2\ndeclared_findings: 3\n\n[F001] A\nseverity: High\nlocation: a.rs:1\nsource: a\nsink: b\n"
    report = endmark.findings.report({"auth-2": cut}, {"agents": [{"agent_id": "auth-2", "dimensions": ["authentication"]}]})
    assert "auth-2" in report and "truncated" in report.lower()


def test_every_command_prints_an_envelope(capfdbinary):
    def document(command, **options):
        code = endmark.envelope.run(command, **options)
        return code, json.loads(capfdbinary.readouterr().out)

    code, found = document(lambda: {"log": "é" * 9_000}, max_response_bytes=3_000)
    assert code == 0 and found["meta"]["truncated"] and found["warnings"][0]["field"] == "data.log"

    def failed():
        raise endmark.envelope.CommandFailed("not_found", "there is no issue 7", exit_code=3)

    code, found = document(failed)
    assert (code, found["ok"], found["error"]["code"]) == (3, False, "not_found")
    assert document(lambda: 1 / 0)[0] == 70
    assert document(lambda: object())[1]["error"]["code"] == "bug"
    assert document(lambda: float("nan"))[1]["error"]["code"] == "bug"
    never = pytest.fail
    for options in [{"max_response_bytes": 10}, {"rules": [{"field": "log[", "max_bytes": 7}]}]:
        with pytest.raises(endmark.InvalidInput):
            endmark.envelope.answers(**options)
        with pytest.raises(endmark.InvalidInput):
            endmark.envelope.run(lambda: never("the command ran"), **options)
    with pytest.raises(SystemExit) as ended:
        endmark.envelope.answers()(lambda name: {"name": name})("x")
    assert ended.value.code == 0


@settings(max_examples=60, deadline=None)
@given(st.integers() | st.integers(2**53, 2**70) | st.integers(-(2**70), -(2**53)) | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_stay_unchanged(number):
    assert json.loads(endmark.envelope.document({"n": [number]}).json)["data"] == {"n": [number]}
    assert endmark.compact({**MESSAGES, "seed": number}, "openai_chat").request["seed"] == number


def test_the_import_is_quick():
    code = "import json, time; begun = time.process_time(); import endmark; print(time.process_time() - begun)"
    took = min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(5))
    # Processor time.
    assert took < 0.03, took


@pytest.mark.parametrize(
    ("name", "value"),
    [("tokens", {"prompt": 1}), ("tokens", endmark.Tokens(100, completion=None)), ("tokens", endmark.Tokens(-1)),
     ("tokens", endmark.Tokens(object())), ("text", 7)],
)  # fmt: skip
def test_invalid_usage_leaves_no_hold_and_hides_no_exception(name, value):
    meter = endmark.Meter(max_tokens=1_000)
    with pytest.raises(endmark.InvalidInput), meter.call("gpt-5", prompt_tokens=300, max_output_tokens=300) as call:
        setattr(call, name, value)
    with pytest.raises(ConnectionError), meter.call("gpt-5", prompt_tokens=300, max_output_tokens=300) as call:
        setattr(call, name, value)
        raise ConnectionError
    assert (meter.usage().held_tokens, meter.usage().tokens.prompt) == (0, 600)


def test_every_name_is_loaded_when_it_is_used():
    stub = Path(endmark.__file__).with_suffix(".pyi").read_text("utf-8")
    named = ast.literal_eval(stub[stub.index("__all__ = ") + len("__all__ = ") :].partition("]")[0] + "]")
    assert sorted(named) == sorted(endmark.__all__) and set(named) <= set(dir(endmark))
    for name in named:
        assert getattr(endmark, name) is not None
    with pytest.raises(AttributeError):
        endmark.nothing
    code = "import sys, endmark; print(*(name for name in sys.modules if name.startswith('endmark.')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "\n"

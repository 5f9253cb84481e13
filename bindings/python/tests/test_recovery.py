"""Tests the recovery of cut replies with any client, and its log."""

import asyncio
import copy
import pickle
import sqlite3

import endmark
import pytest
from endmark import Ask, AskFailed, Correction, Pipeline, Reply, resume_if_truncated, resume_if_truncated_async

DOCUMENT = '{"name": "Tom the cat", "age": 12, "likes": ["fresh fish", "warm blankets"]}'


def rows(path):
    with sqlite3.connect(path) as file:
        return file.execute(
            "SELECT task_id, turn_number, truncation_index, initial_chunk_length, resume_attempts, final_status FROM partial_completion_log"
        ).fetchall()


def test_a_document_is_recovered_from_every_cut():
    for cut in range(1, len(DOCUMENT)):
        def client(ask):
            return Reply(DOCUMENT[ask.shown :] if ask.wanted == "rest" else DOCUMENT, "stop")

        outcome = resume_if_truncated(client, Reply(DOCUMENT[:cut], "length"))
        # A few characters do not show where an answer continues, so the reply is generated again.
        assert outcome.result == "resumed" or cut < 12, cut
        assert (outcome.text, outcome.cut) == (DOCUMENT, "limit"), cut


def test_the_messages_show_the_reply_and_ask_for_the_rest():
    history = [{"role": "user", "content": "Describe the cat."}]

    def client(ask):
        messages = ask.messages(history)
        assert [message["role"] for message in messages] == ["user", "assistant", "user"]
        assert messages[1]["content"] == ask.shown_text and DOCUMENT.startswith(ask.shown_text)
        return Reply(DOCUMENT[len(ask.shown_text) :], "stop")

    assert resume_if_truncated(client, Reply(DOCUMENT[:40], "max_tokens")).json()["age"] == 12


def test_a_whole_reply_needs_no_request_and_is_not_logged(tmp_path):
    def client(ask):
        raise AssertionError("nothing is to be asked")

    with endmark.Log(str(tmp_path / "log.db")) as log:
        assert resume_if_truncated(client, Reply(DOCUMENT, "length"), log=log).result == "whole"
    assert rows(tmp_path / "log.db") == []


def test_a_reply_that_stays_cut_is_logged_with_everything_received(tmp_path):
    path = str(tmp_path / "log.db")
    with endmark.Log(path) as log, pytest.raises(endmark.ResumeExhausted) as raised:
        resume_if_truncated(
            lambda ask: Reply(DOCUMENT[ask.shown : len(ask.so_far) + 9], "length"), Reply(DOCUMENT[:20], "length"), log=log,
            task_id="t", turn_number=3, restart="off",
        )  # fmt: skip
    assert raised.value.attempts == endmark.MAX_RESUME_ATTEMPTS
    assert raised.value.merged_raw == DOCUMENT[:38] == raised.value.text
    assert 20 <= raised.value.verified_len <= 38
    assert rows(path) == [("t", 3, 20, 20, 2, "EXHAUSTED")]


def test_a_failed_call_is_an_attempt_and_another_exception_ends_it(tmp_path):
    def lost(ask):
        raise AskFailed("the line is dead")

    with pytest.raises(endmark.ResumeExhausted, match="line is dead") as raised:
        resume_if_truncated(lost, Reply(DOCUMENT[:20], "length"))
    assert raised.value.merged_raw == DOCUMENT[:20]

    def bug(ask):
        raise StopIteration

    path = str(tmp_path / "log.db")
    with endmark.Log(path) as log, pytest.raises(StopIteration):
        resume_if_truncated(bug, Reply(DOCUMENT[:20], "length"), log=log)
    assert [row[-1] for row in rows(path)] == ["EXHAUSTED"]


def test_refusals_are_not_resumed_and_malformed_json_is_rejected():
    with pytest.raises(endmark.NotResumed) as raised:
        resume_if_truncated(lambda ask: Reply("", "stop"), Reply("I cannot", "content_filter"))
    assert raised.value.text == "I cannot"
    with pytest.raises(endmark.InvalidReply) as invalid:
        resume_if_truncated(lambda ask: Reply("", "stop"), Reply('{"a" 1}', "stop"))
    assert invalid.value.text == '{"a" 1}'


@pytest.mark.parametrize("word", ["moon_phase", "finished", "STOPPED", "a\ud83d"])
def test_an_unknown_stop_reason_does_not_mean_whole(word):
    for text, format in [("The cat sat", None), (DOCUMENT, "json"), (DOCUMENT[:20], "json")]:
        with pytest.raises(endmark.NotResumed, match="stop reason .* is not known") as raised:
            resume_if_truncated(lambda ask: Reply("", "stop"), Reply(text, word), format)
        assert (raised.value.code, raised.value.stop) == ("unknown_stop", word)
    with pytest.raises(endmark.ResumeExhausted, match="unknown reason"):
        resume_if_truncated(lambda ask: Reply(DOCUMENT[ask.shown :], word), Reply(DOCUMENT[:20], "length"))


@pytest.mark.parametrize("word", ["stop_sequence", "stopStringFound", "sequence"])
def test_a_stop_sequence_does_not_prove_that_a_document_is_whole(word):
    outcome = resume_if_truncated(lambda ask: Reply(DOCUMENT[ask.shown :], word), Reply(DOCUMENT[:20], word))
    assert (outcome.text, outcome.cut) == (DOCUMENT, "format")
    assert resume_if_truncated(lambda ask: Reply("", "stop"), Reply("The cat sat", word), None).result == "whole"


@pytest.mark.parametrize("word", ["error", "failed", "unload", "overloaded_error", "null"])
def test_a_stop_reason_for_a_failure_is_a_cut(word):
    outcome = resume_if_truncated(lambda ask: Reply("The cat sat on the mat.", "stop"), Reply("The cat sat on", word), None)
    assert (outcome.text, outcome.cut) == ("The cat sat on the mat.", "dropped")


def test_a_pipeline_resumes_before_it_corrects():
    seen = []

    def client(ask):
        seen.append(type(ask))
        if isinstance(ask, Correction):
            assert "/sum" in ask.prompt
            return Reply('{"sum": 3}', "stop")
        return Reply('"3"}', "stop")

    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    outcome = Pipeline(schema=schema).run(client, Reply('{"sum": ', "length"))
    assert (outcome.text, outcome.result, seen) == ('{"sum": 3}', "corrected", [Ask, Correction])
    with pytest.raises(endmark.InvalidReply) as raised:
        Pipeline(schema=schema, max_corrections=0).run(client, Reply('{"sum": "3"}', "stop"))
    assert raised.value.problems == [{"path": "/sum", "message": '"3" is not of type "integer"'}]


def test_a_sent_reply_is_only_extended():
    text = "The harbour was built in 1904 by the"
    outcome = resume_if_truncated(
        lambda ask: Reply("1904 by the city, and it was widened in 1931.", "stop"), Reply(text, "length"), None, is_sent=True
    )
    assert outcome.text.startswith(text) and outcome.text.endswith("city, and it was widened in 1931.")


def test_invalid_options_raise():
    for options in [{"restart": "perhaps"}, {"prompt": "Weiter!"}, {"schema": {"type": 7}}, {"format": "yaml"}]:
        with pytest.raises(endmark.InvalidInput):
            Pipeline(**options).run(lambda ask: Reply("", "stop"), Reply("{", "length"))


def test_an_async_client_can_be_cancelled(tmp_path):
    async def client(ask):
        await asyncio.sleep(0)
        return Reply(DOCUMENT[ask.shown :], "stop")

    async def never(ask):
        await asyncio.sleep(60)
        return Reply("", "stop")

    async def main():
        first = Reply(DOCUMENT[:30], "length")
        whole = await asyncio.gather(*(resume_if_truncated_async(client, first) for _ in range(50)))
        assert {outcome.text for outcome in whole} == {DOCUMENT}
        with endmark.Log(str(tmp_path / "log.db")) as log:
            task = asyncio.create_task(resume_if_truncated_async(never, first, log=log, task_id="t"))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert [(row[0], row[-1]) for row in rows(tmp_path / "log.db")] == [("t", "EXHAUSTED")]


def test_errors_can_be_copied_and_pickled():
    with pytest.raises(endmark.ResumeExhausted) as exhausted:
        resume_if_truncated(lambda ask: Reply("", "stop"), Reply(DOCUMENT[:20], "length"), max_attempts=0)
    with pytest.raises(endmark.MergeError) as unmerged:
        endmark.merge_chunks("", "")
    invalid = endmark.InvalidReply("{}", [{"path": "", "message": "empty"}])
    for error in [exhausted.value, unmerged.value, invalid, endmark.NotResumed("text"), endmark.InvalidInput("bad", "code")]:
        for copied in [pickle.loads(pickle.dumps(error)), copy.copy(error)]:
            assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))


async def awaited(ask):
    return Reply("", "stop")


def of_unknown_kind(ask):
    raise AskFailed("x", "perhaps")


@pytest.mark.parametrize(
    ("client", "message"),
    [(lambda ask: None, "`ask` returned None"), (lambda ask: "text", "`ask` returned a str"), (awaited, "`ask` is async"),
     (lambda ask: Reply(None), "`text` is None"), (lambda ask: Reply("", limit="7"), "limit|invalid type"),
     (lambda ask: Reply("", limit=object()), "object"), (of_unknown_kind, "unknown `kind` 'perhaps'")],
)  # fmt: skip
def test_an_invalid_answer_raises_and_is_logged(tmp_path, client, message):
    path = str(tmp_path / "log.db")
    with endmark.Log(path) as log:
        with pytest.raises(endmark.InvalidInput, match=message):
            resume_if_truncated(client, Reply(DOCUMENT[:20], "length"), log=log)
        with pytest.raises(endmark.InvalidInput, match="`first` is None"):
            resume_if_truncated(client, None, log=log)
    assert [row[-1] for row in rows(path)] == ["EXHAUSTED"]


def test_a_synchronous_client_in_run_async_raises_and_is_logged(tmp_path):
    path = str(tmp_path / "log.db")
    with endmark.Log(path) as log, pytest.raises(endmark.InvalidInput, match="`ask` is not async: it returned a Reply"):
        asyncio.run(resume_if_truncated_async(lambda ask: Reply("", "stop"), Reply(DOCUMENT[:20], "length"), log=log))
    assert [row[-1] for row in rows(path)] == ["EXHAUSTED"]


class Answered(Exception):
    def __init__(self, status_code):
        super().__init__(f"status {status_code}")
        self.status_code = status_code


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("status", "requests"), [(400, 1), (401, 1), (404, 1), (408, 2), (429, 2), (500, 2), (None, 2)])
def test_a_permanent_refusal_is_not_retried(status, requests, is_async):
    from types import SimpleNamespace

    from endmark import _frameworks

    asked = []
    settings = SimpleNamespace(max_attempts=2, log=None, task_id="")
    first = _frameworks.ReceivedReply("The cat sat on", (), "length", None, None)

    def ask(continuation):
        asked.append(continuation)
        raise Answered(status) if len(asked) % 2 else RuntimeError("wrapped") from Answered(status)

    async def ask_later(continuation):
        return ask(continuation)

    with pytest.raises(endmark.ResumeExhausted) as raised:
        if is_async:
            asyncio.run(_frameworks.recover_async(first, ask_later, settings, is_json=False, turn_number=1))
        else:
            _frameworks.recover(first, ask, settings, is_json=False, turn_number=1)
    assert (len(asked), raised.value.cause == "refused") == (requests, requests == 1)

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everthread.errors import RecordError
from everthread.evals.records import read_records

FIXTURE = Path(__file__).parents[1] / "fixtures" / "bakery.jsonl"

USER: dict[str, Any] = {"role": "user", "content": "Two rolls, please."}
CALL = {"id": "c1", "type": "function", "function": {"name": "place_order", "arguments": '{"pieces": 2}'}}
CALLS: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWER: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "content": "ordered"}


def write(folder: Path, *messages: dict[str, Any], **more: Any) -> Path:
    path = folder / "talk.jsonl"
    path.write_text(json.dumps({"id": "r", "messages": messages, **more}) + "\n")
    return path


def test_a_record_keeps_its_ids_and_becomes_langchain_messages() -> None:
    record = read_records(FIXTURE)[0]

    kinds = [type(message) for message in record.messages[:5]]
    assert kinds == [AIMessage, HumanMessage, AIMessage, ToolMessage, ToolMessage]
    assert [message.id for message in record.messages] == [f"m{place}" for place in range(15)]
    assert record.messages[0].text == "Good morning, what may it be?"


def test_calls_have_parsed_arguments_and_results_their_tool_and_status() -> None:
    messages = read_records(FIXTURE)[0].messages

    call, result, failed = messages[9], messages[10], messages[12]

    assert isinstance(call, AIMessage)
    assert call.tool_calls[0]["args"] == {"pieces": 1, "product": "rye bread"}
    assert isinstance(result, ToolMessage)
    assert isinstance(failed, ToolMessage)
    assert (result.name, result.status, failed.status) == ("place_order", "success", "error")


def test_the_toolkit_comes_from_the_file_beside_the_records() -> None:
    kit = read_records(FIXTURE)[0].toolkit

    assert kit.system.startswith("You take orders")
    assert [tool["function"]["name"] for tool in kit.tools] == ["look_up_shelf", "place_order"]


def test_a_given_file_of_toolkits_wins_over_the_one_beside_the_records(tmp_path: Path) -> None:
    kits = tmp_path / "kits.json"
    kits.write_text('{"bakery": {"system": "Be brief."}}')

    assert read_records(FIXTURE, kits)[0].toolkit.system == "Be brief."


def test_a_system_prompt_in_meta_serves_a_record_without_a_toolkit(tmp_path: Path) -> None:
    path = write(tmp_path, USER, meta={"system": "Answer in French."})

    assert read_records(path)[0].toolkit.system == "Answer in French."


def test_messages_without_ids_are_named_by_place() -> None:
    assert [message.id for message in read_records(FIXTURE)[1].messages] == ["m0000", "m0001", "m0002"]


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    record = {"id": "r", "messages": [{"role": "user", "content": "one\u2028two"}]}
    path.write_text("\n" + json.dumps(record, ensure_ascii=False) + "\n\n", encoding="utf-8")

    (read,) = read_records(path)

    assert (read.messages[0].text, read.where) == ("one\u2028two", f"{path}:2")


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "`messages`"),
        ([{"role": "robot", "content": "x"}], r"`messages\[0\]\.role`: .*got 'robot'"),
        ([USER | {"content": 7}], r"`messages\[0\]\.content"),
        ([USER, ANSWER], "message 1 .'m0001'. answers the call 'c1', which"),
        ([USER, CALLS, ANSWER, ANSWER], "message 3 .*answers the call 'c1', which"),
        ([USER, CALLS], "call 'c1' has no result when the record ends"),
        ([USER, CALLS, USER], "message 2 .*comes before the result of call 'c1'"),
        ([USER, CALLS | {"tool_calls": [CALL, CALL]}, ANSWER], "two calls with the same id"),
        ([USER | {"id": "a"}, USER | {"id": "a"}], "message 1 .'a'. has the id of an earlier message"),
    ],
)
def test_a_malformed_record_is_named_by_file_and_line(tmp_path: Path, messages: list[Any], said: str) -> None:
    path = write(tmp_path, *messages)

    with pytest.raises(RecordError, match=f"talk.jsonl:1: .*{said}"):
        read_records(path)


@pytest.mark.parametrize(
    ("arguments", "said"), [("{oops", "are not JSON"), ("[1]", "must be a JSON object, got a list")]
)
def test_arguments_that_are_no_json_object_are_named_by_message_and_call(
    tmp_path: Path, arguments: str, said: str
) -> None:
    call = {**CALL, "function": {"name": "place_order", "arguments": arguments}}
    path = write(tmp_path, USER, CALLS | {"tool_calls": [call]}, ANSWER)

    with pytest.raises(RecordError, match=f"message 1 .*the arguments of call 'c1' {said}"):
        read_records(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"id": "x", ', "not JSON"),
        (b"[1]", "expected a JSON object, got a list"),
        (b'{"id": "x"}', "`messages` is missing"),
        (b'{"id": "\xff"}', "not UTF-8 at byte 8"),
        (b'{"id": "ok", "messages": [{"role": "user"}]}', "record 'ok' is already on .*:1"),
    ],
)
def test_a_malformed_line_is_named_by_its_number(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(b'{"id": "ok", "messages": [{"role": "user", "content": "hi"}]}\n\n' + line + b"\n")

    with pytest.raises(RecordError, match=f"talk.jsonl:3: {said}"):
        read_records(path)


def test_a_missing_an_empty_and_an_unreadable_file_say_so(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")

    for name, said in (("none.jsonl", "No such file"), ("empty.jsonl", "the file is empty"), (".", "this is a folder")):
        with pytest.raises(RecordError, match=said):
            read_records(tmp_path / name)


@pytest.mark.parametrize(
    ("kits", "said"),
    [
        (None, r"talk.jsonl:1: .*there is no file .*pass `--toolkits FILE`"),
        ('{"shop": {}}', "talk.jsonl:1: unknown toolkit 'bakery'; .* has shop"),
        ("{", "toolkits.json: not JSON"),
        ("[]", "toolkits.json: expected a JSON object of toolkits, got a list"),
        ('{"bakery": {"tools": [{"name": "x"}]}}', "a tool of 'bakery' is not an OpenAI function schema"),
        ('{"bakery": {"tools": 3}}', "toolkits.json: .*list"),
    ],
)
def test_a_toolkit_that_cannot_be_used_is_named(tmp_path: Path, kits: str | None, said: str) -> None:
    path = write(tmp_path, USER, toolkit="bakery")
    if kits is not None:
        (tmp_path / "toolkits.json").write_text(kits)

    with pytest.raises(RecordError, match=said):
        read_records(path)


def test_a_transcript_as_openai_records_it_is_read(tmp_path: Path) -> None:
    schema = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps({"messages": [*said, {"role": "assistant", "content": "hello"}], "tools": [schema]}))

    record = read_records(file)[0]

    assert (record.id, record.toolkit.system, record.toolkit.tools) == ("line-1", "Be brief.", [schema])
    assert [message.type for message in record.messages] == ["human", "ai"]

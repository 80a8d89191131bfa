"""The tokenisers that ship with the package: complete, offline, and not to be broken by any text."""

import importlib.util
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.window import encoding as encoding_module
from everthread.window.encoding import encoding, encoding_name_for
from everthread.window.ranks import EncodingName

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
"""Lone surrogates, NUL and unassigned code points too."""


@pytest.fixture(scope="module")
def build_ranks() -> ModuleType:
    script = Path(__file__).parents[2] / "scripts" / "build_ranks.py"
    spec = importlib.util.spec_from_file_location("build_ranks", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_shipped_ranks_have_the_published_hashes(build_ranks: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert build_ranks.main(["--check"]) == 0

    assert "o200k_base: 199,998 tokens, 446a9538cb6c" in capsys.readouterr().out


def test_shipped_ranks_stay_under_the_size_promised(build_ranks: ModuleType) -> None:
    assert sum(path.stat().st_size for path in build_ranks.TARGET.glob("*.xz")) < 1_200_000


def test_check_refuses_ranks_of_another_encoding(build_ranks: ModuleType, tmp_path: Path) -> None:
    shutil.copy(build_ranks.TARGET / "cl100k_base.xz", tmp_path / "o200k_base.xz")

    with pytest.raises(build_ranks.RanksError, match="expected 446a9538cb6c"):
        list(build_ranks.check(tmp_path))


def test_build_refuses_a_file_that_tiktoken_did_not_publish(build_ranks: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "o200k_base.tiktoken").write_bytes(b"IQ== 0\n")

    with pytest.raises(build_ranks.RanksError, match="o200k_base has sha256"):
        list(build_ranks.build(tmp_path, tmp_path / "out"))


def test_build_reports_a_folder_without_ranks(
    build_ranks: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build_ranks.main(["--from", str(tmp_path)]) == 1

    assert "has no file named 'o200k_base.tiktoken'" in capsys.readouterr().err


def test_packed_ranks_unpack_to_the_same_tokens_and_bytes(build_ranks: ModuleType) -> None:
    tokens = [bytes([255 - byte]) for byte in range(256)] + [b"\n\n", b" the", "é".encode()]
    packed = build_ranks.pack(build_ranks.parse(build_ranks.serialise(tokens)))

    assert build_ranks.ranks.unpack(packed) == tokens
    assert build_ranks.pack(tokens) == packed


def test_packing_refuses_a_token_that_holds_the_separator(build_ranks: ModuleType) -> None:
    with pytest.raises(build_ranks.RanksError, match="0xFF"):
        build_ranks.pack([bytes([byte]) for byte in range(256)] + [b"a\xff"])


@pytest.mark.parametrize(
    ("name", "tokens"), [("o200k_base", [24912, 2375]), ("cl100k_base", [15339, 1917])], ids=["o200k", "cl100k"]
)
def test_hello_world_has_the_published_tokens(name: EncodingName, tokens: list[int]) -> None:
    assert encoding(name).encode_ordinary("hello world") == tokens


def test_encoding_is_built_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the tokeniser opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(encoding_module, "_built", {})

    assert encoding("cl100k_base").encode_ordinary("hello world") == [15339, 1917]


def test_threads_that_ask_at_once_get_one_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding_module, "_built", {})

    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(lambda _: encoding("cl100k_base"), range(8)))

    assert len({id(one) for one in built}) == 1


@pytest.mark.parametrize(
    "model",
    ["gpt-4o", "gpt-4o-mini-2024-07-18", "chatgpt-4o-latest", "openai:gpt-4.1", "openai/gpt-5.1", "o1", "o3-mini"],
)
def test_newer_openai_models_count_exactly_with_o200k(model: str) -> None:
    assert encoding_name_for(model) == ("o200k_base", True)


@pytest.mark.parametrize("model", ["gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "gpt-35-turbo", "ft:gpt-3.5-turbo:org::1"])
def test_older_openai_models_count_exactly_with_cl100k(model: str) -> None:
    assert encoding_name_for(model) == ("cl100k_base", True)


@pytest.mark.parametrize("model", ["offline", "scripted", "replay", "replay:recorded.jsonl"])
def test_local_models_count_exactly(model: str) -> None:
    assert encoding_name_for(model) == ("o200k_base", True)


@pytest.mark.parametrize("model", [None, "", "claude-sonnet-4-5", "llama3", "qwen3", "gemini-2.5", "gpt-4all", "o10"])
def test_other_models_are_estimated_with_o200k(model: str | None) -> None:
    assert encoding_name_for(model) == ("o200k_base", False)


@given(ANY_TEXT)
def test_any_text_can_be_encoded(text: str) -> None:
    tokens = encoding().encode_ordinary(text)

    assert encoding().decode(tokens) == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def test_special_tokens_in_text_are_ordinary_text() -> None:
    tokens = encoding().encode_ordinary("<|endoftext|>")

    assert len(tokens) > 1
    assert max(tokens) < 199_998


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_a_million_blanks_do_not_break_the_tokeniser(name: EncodingName) -> None:
    text = "a" + " " * 1_000_000 + "b"

    tokens = encoding(name).encode_ordinary(text)

    assert encoding(name).decode(tokens) == text

"""Secrets in arguments never reach a snapshot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdbext.scrubbing.secrets_in_text import TITLE_LENGTH, scrub, scrub_text, title_of


@pytest.mark.parametrize(
    "arguments, clean",
    [
        (
            ["vllm", "serve", "m", "--api-key", "a", "b", "--tp", "4"],
            ["vllm", "serve", "m", "--api-key", "***", "***", "--tp", "4"],
        ),
        (["x", "--hf-token=SECRET"], ["x", "--hf-token=***"]),
        (["x", "--password", "SECRET", "model"], ["x", "--password", "***", "model"]),
        (
            ["bash", "-c", "HF_TOKEN=SECRET python x --secret SECRET run"],
            ["bash", "-c", "HF_TOKEN=*** python x --secret *** run"],
        ),
        (["http://user:SECRET@host/x"], ["http://***@host/x"]),
        (["--config", '{"api_key": "SECRET", "tp": 1}'], ["--config", '{"api_key": "***", "tp": 1}']),
        (["-H", "Authorization: Bearer SECRET"], ["-H", "Authorization: Bearer ***"]),
        (["run", "hf_abcdefghijklmnopqrstu"], ["run", "***"]),
        (["--token", "--verbose"], ["--token", "--verbose"]),
    ],
)
def test_secrets_are_masked(arguments, clean):
    assert list(scrub(arguments)) == clean
    assert "SECRET" not in title_of(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tokenizer", "/models/x", "--max-tokens", "100", "--tokenizer-mode", "auto"],
        ["rtp_llm_rank-1"],
        ["torchrun", "--rdzv-endpoint=h:29500", "--local-rank=1", "MASTER_PORT=29500"],
        ["--monkey=banana", "--ssl-keyfile", "k.pem"],
    ],
)
def test_harmless_arguments_stay(arguments):
    assert list(scrub(arguments)) == arguments


def test_title_is_one_bounded_line():
    title = title_of(["python", "-c", "a\n  b" * 500])
    assert len(title) == TITLE_LENGTH
    assert "\n" not in title


@given(st.text(max_size=200))
def test_scrubbing_twice_changes_nothing(text):
    once = scrub_text(text)
    assert scrub_text(once) == once

"""Words made safe and short."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gdbext.render.safe_text import (
    clean,
    milliseconds,
    place_of,
    rank_set,
    shorten,
    shorten_located,
    shorten_name,
    wrapped,
)
from gdbext.render.style import Style

STYLE = Style()
ASCII = Style(unicode=False)


@pytest.mark.parametrize(
    "dirty, shown",
    [
        (None, ""),
        ("ft::Layer::forward", "ft::Layer::forward"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b]0;title\x07rest", "]0;titlerest"),  # what is not a plain colour stays visible: hiding would mislead
        ("two\r\nlines\tand\u2028more", "two lines and more"),
        ("\u202egnp.exe\u2066", "gnp.exe"),
        ("nul\x00zero\u200bwidth", "nulzerowidth"),
        ("bad\udcffbyte", "bad\N{REPLACEMENT CHARACTER}byte"),
        ("日本", "日本"),
    ],
)
def test_clean(dirty, shown):
    assert clean(dirty, STYLE) == shown


def test_clean_for_a_terminal_without_unicode():
    assert clean("naïve \udcff 日本", ASCII) == "na?ve ? ??"


@given(some.text(some.characters()), some.booleans())
def test_clean_text_is_printable_whatever_came(text, unicode):
    shown = clean(text, Style(unicode=unicode))
    assert all(character.isprintable() for character in shown)
    shown.encode("utf-8" if unicode else "ascii")
    assert clean(shown, Style(unicode=unicode)) == shown


def test_clean_caps_what_it_reads():
    assert len(clean("x" * 10_000_000, STYLE)) == 20_000


@pytest.mark.parametrize(
    "name, limit, shown",
    [
        ("main", 4, "main"),
        ("a::b<std::map<int, char>>::c", 12, "a::b<…>::c"),
        ("fastertransformer::kernels::detail::Launcher::run", 40, "fastertransformer::…::Launcher::run"),
        ("fastertransformer::kernels::detail::Launcher::run", 16, "…::Launcher::run"),
        ("fastertransformer::run_a_very_long_name", 12, "run_a…g_name"),
        ("ns::Set<int, char>::operator<", 21, "ns::Set<…>::operator<"),
        ("operator<< <char, int, std::less<char>>", 20, "operator<< <…>"),
        ("a<b<c>::d", 7, "a<…"),  # cut short by whoever printed it
    ],
)
def test_shorten_name_gives_up_template_arguments_then_namespaces(name, limit, shown):
    assert shorten_name(name, limit, STYLE) == shown


@given(some.text("ab<>:( ", max_size=60), some.integers(0, 50), some.booleans())
def test_short_is_never_longer_than_asked(text, limit, unicode):
    style = Style(unicode=unicode)
    for cut in (shorten, shorten_name, shorten_located):
        assert len(cut(text, limit, style)) <= limit


def test_shorten_keeps_both_ends():
    assert shorten("abcdefghij", 7, STYLE) == "abc…hij"
    assert shorten("abcdefghij", 7, ASCII) == "ab...ij"


def test_a_cut_place_keeps_the_line_number_as_long_as_it_can():
    text = "engine::layers::Attention::forward  attention.cc:88"
    assert shorten_located(text, 40, STYLE) == "…::Attention::forward  attention.cc:88"
    assert shorten_located(text, 20, STYLE) == "…::forward"


@pytest.mark.parametrize(
    "file, line, module, shown",
    [
        ("/src/a/attention.cc", 88, "/lib/x.so", "attention.cc:88"),
        ("model.py", None, None, "model.py"),
        ("/srv/vllm/worker/__init__.py", 3, None, "worker/__init__.py:3"),
        (None, None, "/usr/lib/libnccl.so.2", "(libnccl.so.2)"),
        (None, 7, None, ""),
    ],
)
def test_place_of(file, line, module, shown):
    assert place_of(file, line, module, STYLE) == shown


@pytest.mark.parametrize(
    "ranks, limit, shown",
    [
        ((), 24, ""),
        ((5, 0, 1, 2), 24, "0-2,5"),
        (range(1024), 24, "0-1023"),
        (range(0, 1024, 2), 16, "0,2,4,6,… (512)"),
        ((1000000, 2000000), 4, "1000000,… (2)"),
    ],
)
def test_rank_set(ranks, limit, shown):
    assert rank_set(ranks, STYLE, limit) == shown


@pytest.mark.parametrize(
    "value, shown",
    [(None, ""), (0.04, "0.0 ms"), (4.21, "4.2 ms"), (99.96, "100 ms"), (999.7, "1.0 s"), (75_200, "75 s")],
)
def test_milliseconds(value, shown):
    assert milliseconds(value) == shown


def test_wrapped_text_ends_with_a_whole_word_when_it_is_cut():
    lines = wrapped("waits for the device while others wait for it " * 4, Style(30), "    ", "  ", most=2)
    assert lines == ["  waits for the device while", "    others wait for it waits …"]
    assert wrapped("", STYLE) == []

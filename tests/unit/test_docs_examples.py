"""README and docs: each example is what is printed today, the README is short, each page says for whom it is."""

import re

import pytest

from gdbext.commands.all_commands import IN_GDB, IN_SHELL
from tests import docs_examples as docs

EXAMPLES = docs.all_examples()
RUN = [example for example in EXAMPLES if example.output and docs.shell_words(example)]
REWRITE = "python -m tests.docs_examples writes what is printed today"


@pytest.mark.parametrize("example", RUN, ids=[example.name for example in RUN])
def test_an_example_is_what_is_printed(example):
    assert example.output != ("...",), "an example that shows nothing"
    lines = docs.printed(example)
    assert docs.shows(example.output, lines), f"{REWRITE}\n" + "\n".join(lines)


def test_an_example_with_output_is_run_here_or_in_gdb_or_listed():
    listed = {(page, start) for page, start in docs.NOT_RUN}
    used = set()
    for example in EXAMPLES:
        if not example.output or docs.shell_words(example):
            continue
        key = next(((p, c) for p, c in listed if p == example.page.name and example.command.startswith(c)), None)
        assert key or docs.gdb_scene(example), f"{example.name}: not run, and not in NOT_RUN with a reason"
        used.add(key)
    assert listed <= used, "listed as not run, and no page has it"


def test_an_excerpt_stands_in_the_file_that_is_read():
    shown = [one for one in RUN if one.before and one.command.startswith("gdbext diagnose -q --brief tests/")]
    assert len(shown) >= 15
    for example in shown:
        path = docs.ROOT / example.command.split()[-1]
        assert docs.excerpt_is_of(example.before, path), f"{example.name}: not lines of {path.name} in this order"


def test_the_picture_is_current():
    assert docs.PICTURE.read_text() == docs.answer_picture(), REWRITE


def test_the_readme_is_one_screen():
    assert len((docs.ROOT / "README.md").read_text().splitlines()) <= 130


def test_each_page_says_for_whom_it_is():
    for page in docs.PAGES[1:]:
        paragraph = page.read_text().split("\n\n")[1]
        assert paragraph.startswith("For "), f"{page.name}: the first paragraph says for whom the page is"


def test_links_lead_somewhere():
    for page in docs.PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_commands_in_examples_exist():
    for example in EXAMPLES:
        words = example.command.split()
        if example.prompt == "$" and words[0] == "gdbext":
            assert words[1] in IN_SHELL, example.name


def test_the_page_of_commands_has_all():
    page = (docs.ROOT / "docs" / "commands.md").read_text()
    missing = [name for name in IN_SHELL if f"`gdbext {name}" not in page]
    groups = {command.gdb.split()[0] for command in IN_GDB} - {"llm-explain"}
    assert missing + [name for name in sorted(groups) if f"`{name}" not in page] == []

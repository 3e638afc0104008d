"""The file of a service: every key is read, and nothing that is wrong with it goes unsaid."""

import json
from argparse import Namespace
from pathlib import Path

import pytest

from gdbext.cli.service import service_settings as settings
from gdbext.cli.service.service_settings import JobRule, address_of
from gdbext.commands.declared.watch import COMMANDS
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.errors import GdbextError, UsageError

FULL = """
every = 15
into = "/var/lib/gdbext"
keep = 20
quota = 512
deadline = 60
alert_timeout = 5
metrics = "0.0.0.0:9465"
textfile = "/var/lib/node_exporter/gdbext.prom"
lock = "/run/lock/x"
gdb = "/opt/gdb"
still = 90
exec = "page --team 'infra people'"

[[job]]
name = "chat"
engine = "vllm"
still = 30.5
webhook = "https://hooks.example/T0/secret"
alert_on = ["hang", "undecided"]

[[job]]
title = "train.py"
exec = ["mail", "me"]
"""


def options(**given):
    names = {one.shell_name or one.name.lstrip("-").replace("-", "_") for one in COMMANDS[0].arguments}
    return Namespace(**{**dict.fromkeys(names), "inputs": [], **given})


def read(text, tmp_path, name="x.toml", **given):
    file = tmp_path / name
    file.write_text(text)
    return settings.of(options(config=str(file), **given))


def test_every_key(tmp_path):
    found = read(FULL, tmp_path)
    chat, train = found.rules
    assert (found.every, found.keep, found.quota, found.deadline, found.alert_timeout) == (15, 20, 512, 60, 5)
    assert (found.into, found.metrics, found.lock, found.gdb) == (
        "/var/lib/gdbext",
        "0.0.0.0:9465",
        "/run/lock/x",
        "/opt/gdb",
    )
    assert found.textfile.endswith(".prom")
    assert chat == JobRule(
        name="chat",
        selector=Selector(engine="vllm"),
        still=30.5,
        exec=("page", "--team", "infra people"),
        webhook="https://hooks.example/T0/secret",
        alert_on=("hang", "undecided"),
    )
    assert (train.name, train.selector.name, train.still, train.exec) == ("", "train.py", 90, ("mail", "me"))


def test_json_is_read_by_its_name_and_the_command_line_comes_first(tmp_path):
    found = read(json.dumps({"every": 3, "quota": 7}), tmp_path, "x.json", quota=9)
    assert (found.every, found.quota) == (3, 9)
    assert found.rules == (JobRule(),), "every job that is found"


def test_without_a_file():
    found = settings.of(options(engine="vllm", still=5.0, exec="page", every=2.0))
    assert found.rules == (JobRule(selector=Selector(engine="vllm"), still=5, exec=("page",)),)
    assert (found.every, settings.of(options()).every) == (2, 10)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("evry = 3", "unknown key 'evry'. Did you mean 'every'?"),
        ("every = 0", "every must be a number of seconds, not '0'"),
        ("every = true", "every must be"),
        ("keep = 1.5", "keep must be a number of bundles"),
        ("metrics = 70000", "metrics must be [HOST:]PORT"),
        ("webhook = 'file:///etc/passwd'", "webhook must be an http(s) URL"),
        ("exec = ''", "exec must be a command"),
        ('exec = "a \'b"', "exec must be a command"),
        ("exec = [1]", "exec must be a command"),
        ("alert_on = ['all']", "alert_on must be a list of hang, undecided, moves, gone"),
        ("job = 3", "job must be a list of tables"),
        ("[[job]]\nname = '../x'", "job 1: name must be letters"),
        ("[[job]]\nname = 'a'\n[[job]]\nname = 'a'", "two jobs have one name"),
        ("[[job]]\nevery = 3", "job 1: unknown key 'every'"),
        ("every = ", "Invalid value"),
        ("\0", "TOML, or JSON in a file NAME.json"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text, said, tmp_path):
    with pytest.raises(UsageError) as caught:
        read(text, tmp_path)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_cannot_be_one(tmp_path):
    with pytest.raises(GdbextError, match="cannot read"):
        settings.of(options(config=str(tmp_path / "none.toml")))
    with pytest.raises(UsageError, match="more than 1 MiB"):
        read(" " * (1 << 20) + "  ", tmp_path)
    with pytest.raises(UsageError, match="is not an object"):
        read("[]", tmp_path, "x.json")
    with pytest.raises(UsageError):
        read("[" * 100_000, tmp_path, "x.json")
    with pytest.raises(UsageError, match="choose them in one place"):
        read("[[job]]\nname = 'a'", tmp_path, engine="vllm")
    with pytest.raises(UsageError, match="--exec must be a command"):
        settings.of(options(exec="a 'b"))


def test_the_file_that_is_shown_in_the_docs_is_one(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text("utf-8")
    shown = page.split("```toml\n")[1].split("```")[0]
    assert len(read(shown, tmp_path).rules) == 2
    assert all(f"`{key.name}`" in page for key in (*settings._OF_ALL, *settings._OF_A_JOB, *settings._SELECTING))


def test_an_address_is_of_this_host_unless_one_is_named():
    assert address_of("9465") == ("127.0.0.1", 9465)
    assert address_of("[::1]:80") == ("::1", 80)
    assert address_of("node7:80") == ("node7", 80)

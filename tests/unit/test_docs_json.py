"""docs/json.md: its examples print what it shows, and its table has every schema."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gdbext.model.json_documents.answers import ANSWERS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "json.md").read_text("utf-8")
EXAMPLES = re.findall(r"^\$ (gdbext .*)\n((?:[^$`].*\n)+)", PAGE, re.MULTILINE)


@pytest.mark.process
@pytest.mark.parametrize(("command", "printed"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_prints_what_is_shown(command, printed):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, env={"PATH": path})
    assert (done.stdout, done.stderr) == (printed, "")


def test_the_table_has_every_schema():
    assert len(EXAMPLES) == 4
    rows = re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"`([\w-]+)`", " ".join(rows))) == sorted(ANSWERS)

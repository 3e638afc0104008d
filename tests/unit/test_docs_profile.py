"""docs/profile.md agrees with the rows that it describes."""

from pathlib import Path

import pytest

from gdbext.knowledge.dumps import mindspore_keys
from gdbext.knowledge.launch import start_settings
from gdbext.knowledge.profilers import PROFILERS

PAGE = (Path(__file__).parents[2] / "docs" / "profile.md").read_text("utf-8")
GPU = (Path(__file__).parents[2] / "docs" / "gpu.md").read_text("utf-8")
ENGINES = {line.split("|")[1].strip(): line for line in PAGE.splitlines() if line.startswith("| ")}


@pytest.mark.parametrize("row", PROFILERS.values(), ids=PROFILERS)
def test_each_engine_with_its_options(row):
    options = ENGINES[row.engine].split("|")[4]
    assert set(options.partition("`")[2].partition("`")[0].split()) == {
        f"--{name.replace('_', '-')}" for name in row.fields
    }


@pytest.mark.parametrize("row", start_settings.SETTINGS, ids=lambda row: row.name)
def test_each_setting_or_its_family(row):
    families = ("TORCH_COMPILE_DEBUG", "TLLM_PROFILE", "MS_DEV_SAVE_GRAPHS", "DUMPER_")
    page = GPU if row.purpose == start_settings.SANITIZER else PAGE
    assert row.name in page or any(row.name.startswith(one) and one in PAGE for one in families)


def test_each_key_of_mindspore():
    assert [row.name for row in mindspore_keys.KEYS if f"`{row.name}`" not in PAGE] == []

"""An engine is one folder: what stands in it is in every table, by one line in the list of engines."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gdbext.knowledge import engines
from gdbext.knowledge.engines.engine_list import ENGINES

ROOT = Path(engines.__file__).parent
TABLES = {
    "profile": {"PROFILE"},
    "frames": {"RULES"},
    "layouts": {"LAYOUTS", "STRUCTS", "WRAPPERS", "SEQUENCES", "GRAPHS", "RELEASES", "DTYPES", "PLACES"},
    "checks": {"MESSAGES", "PRINTED", "FAIL_FUNCTIONS", "CALLED", "SWITCHES", "STARTING", "DEBUG_CHECKS"},
    "timeouts": {"TIMEOUTS"},
    "streams": {"HOLDERS", "EVENT_HOLDERS", "CURRENT"},
    "builds": {"BUILDS"},
}
"""What the tables take from each part."""
READ_BY_NAME = {
    "fastertransformer/layouts": "OF_RTP_LLM",
    "torch/layouts": "MEASURED|QUANTISED|THPVARIABLE",
    "torch/streams": r"TORCH_\w+",
}
"""What one reader asks of one engine alone: no table has it."""

NEW = {
    "profile": """
        from gdbext.knowledge.row_kinds import EngineProfile
        PROFILE = EngineProfile(name="new")
    """,
    "frames": """
        from gdbext.knowledge.row_kinds import FrameRule
        RULES = (FrameRule("new-wait", "io", "new::wait$", "new"),)
    """,
    "layouts": """
        from gdbext.knowledge.row_kinds import EnumTable, SequenceRow, StructRow, TensorLayout, WrapperRow, GraphRow
        LAYOUTS = (TensorLayout("new::Tensor", "new", "new::Tensor", "new"),)
        STRUCTS = (StructRow("new::Tensor", 8, {}, "new"),)
        WRAPPERS = (WrapperRow("new::Ref", ("ref",), "new"),)
        SEQUENCES = (SequenceRow("new::Vector", "begin", "new"),)
        GRAPHS = (GraphRow("new::Graph", (("nodes", "n"),), "name", "new"),)
        DTYPES = PLACES = EnumTable("new", {}, "new")
    """,
    "checks": """
        from gdbext.knowledge.engines.engine_row_kinds import CalledRow, DebugCheckRow, FailRow, MessageRow, SwitchRow
        MESSAGES = PRINTED = (MessageRow("new", "new::check", "new failed", "new"),)
        FAIL_FUNCTIONS = (FailRow("new", "new::fail", "new"),)
        CALLED = (CalledRow("new::check", 0, 1, "new"),)
        SWITCHES = (SwitchRow("new", "new::check", "NEW=1", "new"),)
        STARTING = (("new", "NEW", "1", "new"),)
        DEBUG_CHECKS = (DebugCheckRow("new", "new::check", b"NEW", "NEW", ("1",), "new"),)
    """,
    "timeouts": """
        from gdbext.knowledge.engines.engine_row_kinds import TimeoutRow
        TIMEOUTS = (TimeoutRow("new gives up", 7, "new", engine="new"),)
    """,
    "streams": """
        from gdbext.knowledge.engines.engine_row_kinds import Current, Holder
        HOLDERS = EVENT_HOLDERS = (Holder("new::Stream", "s", "new"),)
        CURRENT = (Current("new::", "s", "new", "new"),)
    """,
    "builds": """
        from gdbext.knowledge.engines.engine_row_kinds import BuildRow
        BUILDS = (BuildRow("new", ("make",), "all", "new"),)
    """,
}
ASK = """
import sys
from gdbext.knowledge import engines
from gdbext.knowledge.engines import engine_list
engines.__path__.append(sys.argv[1])
engine_list.ENGINES = {**engine_list.ENGINES, "new": sys.argv[2]}
from gdbext.knowledge import frames; from gdbext.knowledge import all_tensor_layouts as layouts
from gdbext.knowledge.causes import timeouts
from gdbext.knowledge.engines import all_build_ways, all_profiles
from gdbext.knowledge.errors import checks
from gdbext.knowledge.runtimes import cuda_streams
def said(table, names, field):
    return [[getattr(row, field) for row in getattr(table, name)] for name in names.split()]
tables = {
    "profile": said(all_profiles, "PROFILES", "name"),
    "frames": [[row.id.split("-")[0] for row in frames.RULES]],
    "layouts": said(layouts, "LAYOUTS STRUCTS WRAPPERS SEQUENCES GRAPHS", "source")
    + [list(layouts.DTYPE_TABLES), list(layouts.PLACE_TABLES)],
    "checks": said(checks, "MESSAGES PRINTED FAIL_FUNCTIONS CALLED SWITCHES DEBUG_CHECKS", "source")
    + [[row[0] for row in checks.STARTING]],
    "timeouts": said(timeouts, "TIMEOUTS", "engine"),
    "streams": said(cuda_streams, "HOLDERS EVENT_HOLDERS CURRENT", "source"),
    "builds": said(all_build_ways, "BUILDS", "engine"),
}
print(" ".join(f"{part}:{sum(rows.count('new') for rows in found)}/{len(found)}" for part, found in tables.items()))
"""


def run(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def test_the_list_names_what_the_folders_hold():
    folders = {path.parent.name: set() for path in ROOT.glob("*/__init__.py")}
    for path in ROOT.glob("*/*.py"):
        if path.stem in TABLES:
            folders[path.parent.name].add(path.stem)
    assert {engine: set(found.split()) for engine, found in ENGINES.items()} == folders


@pytest.mark.parametrize("part", [f"{engine}/{part}" for engine, parts in ENGINES.items() for part in parts.split()])
def test_no_rows_of_an_engine_are_forgotten(part):
    """A public name in a part is a table's, or known to one reader."""
    names = re.findall(r"^([A-Z][A-Z_]*)\b[^=\n]*=", (ROOT / f"{part}.py").read_text("utf-8"), re.MULTILINE)
    taken = TABLES[part.partition("/")[2]]
    assert {name for name in names if not re.fullmatch(READ_BY_NAME.get(part, "$"), name)} <= taken
    assert set(names) & taken


@pytest.mark.process
def test_a_new_engine_is_in_every_table_by_its_folder_and_one_line(tmp_path):
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""A new engine."""\n')
    for part, text in NEW.items():
        (folder / f"{part}.py").write_text("\n".join(line.strip() for line in text.splitlines()))
    expected = "profile:1/1 frames:1/1 layouts:7/7 checks:7/7 timeouts:1/1 streams:3/3 builds:1/1"
    assert run(ASK, str(tmp_path), " ".join(NEW)) == expected
    assert run(ASK, str(tmp_path), "profile").startswith("profile:1/1 frames:0/1")


@pytest.mark.process
@pytest.mark.parametrize(
    ("table", "part"),
    [
        ("engines.all_profiles", "profile"),
        ("frames", "frames"),
        ("all_tensor_layouts", "layouts"),
        ("errors.checks", "checks"),
        ("causes.timeouts", "timeouts"),
        ("runtimes.cuda_streams", "streams"),
        ("engines.all_build_ways", "builds"),
    ],
)
def test_a_table_loads_its_own_part_of_the_engines_alone(table, part):
    code = f"""
import sys, gdbext.knowledge.{table}
names = [name.split(".")[3:] for name in sys.modules if name.startswith("gdbext.knowledge.engines.")]
print(" ".join(sorted({{name[1] for name in names if len(name) == 2}})))
"""
    loaded = set(run(code).split())
    assert part in loaded
    assert loaded & set(TABLES) == {part}

"""gdbext.pyz in gdb: the file that it unpacks is sourced like any other."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_gdb_sources_what_the_one_file_unpacks(tmp_path, turn_gdb):
    archive = tmp_path / "gdbext.pyz"
    subprocess.run([sys.executable, ROOT / "scripts" / "package", "-o", archive], check=True)
    told = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    init = subprocess.run(["python3", archive, "gdbinit"], env=told, check=True, stdout=subprocess.PIPE, text=True)
    words = ["-nx", "-batch", "-ex", f"source {init.stdout.strip()}", "-ex", "llm-explain late-rank"]
    said = subprocess.run([turn_gdb, *words], env=told, capture_output=True, text=True)
    assert "late-rank (cause)" in said.stdout and not said.stderr, said.stderr

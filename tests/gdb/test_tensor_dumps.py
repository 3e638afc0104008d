"""Tensors that two ranks have dumped, compared in a gdb that debugs nothing."""

import numpy as np
import torch

from gdbext.cli.dump import listing
from tests.gdb.gdbrun import gdb_batch


def diff(gdb, left, right):
    (found,) = gdb_batch(gdb, f"llm-tensor diff {left} {right} --json").documents
    return found


def test_numpy_files_that_dump_ls_names(turn_gdb, tmp_path):
    """MindSpore's layout: the same tensor of two ranks."""
    for rank in range(2):
        folder = tmp_path / f"rank_{rank}" / "net" / "0" / "3"
        folder.mkdir(parents=True)
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        values[1, 2] += rank
        np.save(folder / f"MatMul.op1.{rank}.0.17{rank}.output.0.ND.float32.npy", values)
    found = diff(turn_gdb, *listing(str(tmp_path)).pair)
    assert found["differing"] == 1 and found["max_absolute_at"] == [1, 2]


def test_passes_of_sglang(turn_gdb, tmp_path):
    for rank in range(2):
        folder = tmp_path / f"TP{rank}_PP0_Rank{rank}_pid{70 + rank}"
        folder.mkdir()
        tensors = {"model.norm": torch.ones(4, dtype=torch.bfloat16), "logits": torch.arange(4.0) + rank}
        torch.save(tensors, folder / "Pass00000.pt")
    left, right = listing(str(tmp_path)).pair
    assert diff(turn_gdb, f"{left}:model.norm", f"{right}:model.norm")["differing"] == 0
    assert diff(turn_gdb, f"{left}:logits", f"{right}:logits")["differing"] == 4

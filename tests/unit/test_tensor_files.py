"""Files that numpy and torch read back, and files of theirs that we read; nothing is ever overwritten silently."""

import errno
import json
import os
import stat
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdbext.analysis.tensors import tensor_files
from gdbext.analysis.tensors.comparing.difference import Source, difference
from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.tensor_files import SavedTensor
from gdbext.knowledge.dtypes import DTYPES
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.tensor import TensorInfo
from tests.unit.tensor_memory import BASE, FakeMemory, save, tensor_of


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "bool", "int8", "uint64", "complex64", "complex128"]
)
def test_npy_is_read_by_numpy(tmp_path, dtype):
    whole = (np.arange(600).reshape(20, 30) % 7).astype(dtype)
    for number, view in enumerate([whole, whole.T, whole[3:5, ::-2], whole[0, 0:0], whole[2, 3]]):
        view = np.asarray(view)
        info, memory = tensor_of(whole, view) if view.base is not None else tensor_of(view)
        path = tmp_path / f"{number}.npy"
        saved = save(info, memory.read, str(path))
        back = np.load(path)
        assert back.dtype == dtype and np.array_equal(back, view)
        assert saved.nbytes == path.stat().st_size and saved.notes == ()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with SavedTensor(str(path)) as loaded:
            assert difference(Source(info, memory.read), Source(loaded.info, loaded.read)).same
    assert sorted(os.listdir(tmp_path)) == [f"{number}.npy" for number in range(5)]


@pytest.mark.parametrize("name", ["bf16", "fp8_e4m3fn", "fp4_e2m1", "int4", "uint6", "q4_0", "complex32", "int3_byte"])
def test_types_that_npy_lacks_are_widened_exactly(tmp_path, name):
    dtype = DTYPES[name]
    raw = bytearray(np.random.default_rng(1).bytes(dtype.unit * 64))
    if dtype.kind == "block":
        raw[1 :: dtype.unit] = b"\x2c" * 64
    values = np.array(decode.values(decode.expand(bytes(raw), dtype), dtype))
    info = TensorInfo("x", dtype=name, shape=values.shape, address=BASE)
    saved = save(info, FakeMemory(raw).read, str(tmp_path / "x.npy"))
    assert np.array_equal(np.load(tmp_path / "x.npy"), values, equal_nan=True)
    assert "every value exactly" in saved.notes[0]


def test_safetensors_keep_the_small_types(tmp_path):
    for name, word, peer in [("bf16", "BF16", ml_dtypes.bfloat16), ("fp8_e5m2", "F8_E5M2", ml_dtypes.float8_e5m2)]:
        whole = (np.arange(12) - 5.5).reshape(3, 4).astype(peer)
        info = TensorInfo("w", dtype=name, shape=(3, 4), address=BASE)
        path = tmp_path / f"{name}.safetensors"
        assert save(info, FakeMemory(whole.tobytes()).read, str(path), "[1:]").notes == ()
        raw = path.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + length])
        assert header["tensor"] == {"dtype": word, "shape": [2, 4], "data_offsets": [0, 8 * whole.itemsize]}
        assert (8 + length) % 8 == 0 and raw[8 + length :] == whole[1:].tobytes()
        with SavedTensor(str(path)) as loaded:
            assert loaded.info.dtype == name and loaded.info.shape == (2, 4)


def test_nothing_is_overwritten_unasked(tmp_path):
    info, memory = tensor_of(np.arange(5))
    path = tmp_path / "x.npy"
    path.write_text("precious")
    with pytest.raises(UsageError, match="exists"):
        save(info, memory.read, str(path))
    assert path.read_text() == "precious"
    save(info, memory.read, str(path), force=True)
    assert np.load(path).tolist() == list(range(5))


def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path):
    info, memory = tensor_of(np.arange(5))
    path = tmp_path / "x.npy"
    with pytest.raises(UsageError, match="exists"):
        save(info, memory.read, str(path), progress=lambda done, total: path.write_text("precious") and None)
    assert path.read_text() == "precious" and os.listdir(tmp_path) == ["x.npy"]


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
def test_no_half_file_is_left(tmp_path, monkeypatch, failure):
    info, memory = tensor_of(np.arange(5))

    def broken(*_):
        raise failure

    monkeypatch.setattr(tensor_files.os, "fsync", broken)
    with pytest.raises((GdbextError, KeyboardInterrupt)) as caught:
        save(info, memory.read, str(tmp_path / "x.npy"))
    assert os.listdir(tmp_path) == []
    if isinstance(failure, OSError):
        assert str(caught.value).endswith("No space left on device")


def test_a_full_disk_is_one_line():
    info, memory = tensor_of(np.arange(5))
    with pytest.raises(GdbextError, match=r"cannot write /proc/x\.npy"):
        save(info, memory.read, "/proc/x.npy")


def test_what_cannot_be_read_is_not_saved(tmp_path):
    info, memory = tensor_of(np.arange(4000).reshape(4, 1000), holes=[(8192, 12288)])
    with pytest.raises(GdbextError, match=r"element \[1, 24\] is unreadable"):
        save(info, memory.read, str(tmp_path / "x.npy"))
    assert os.listdir(tmp_path) == []


def test_formats_that_are_none(tmp_path):
    info, memory = tensor_of(np.arange(5).astype(np.complex128))
    with pytest.raises(UsageError, match="unknown format"):
        save(info, memory.read, str(tmp_path / "x.txt"))
    with pytest.raises(GdbextError, match="no complex128"):
        save(info, memory.read, str(tmp_path / "x.safetensors"))
    with pytest.raises(GdbextError, match="No such file"):
        SavedTensor(str(tmp_path / "none.npy"))


def test_files_of_numpy(tmp_path):
    whole = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    info, memory = tensor_of(whole)
    for number, array in enumerate([whole, np.asfortranarray(whole), whole.astype(np.float64)]):
        np.save(tmp_path / f"{number}.npy", array)
        with SavedTensor(str(tmp_path / f"{number}.npy")) as loaded:
            assert difference(Source(info, memory.read), Source(loaded.info, loaded.read)).same
    np.save(tmp_path / "bf16.npy", np.ones(3, ml_dtypes.bfloat16))
    with pytest.raises(GdbextError, match="V2"):
        SavedTensor(str(tmp_path / "bf16.npy"))
    with SavedTensor(str(tmp_path / "bf16.npy"), like="bf16") as loaded:
        assert loaded.info.dtype == "bf16"
    np.save(tmp_path / "big.npy", whole.astype(">f4"))
    with pytest.raises(GdbextError, match=">f4"):
        SavedTensor(str(tmp_path / "big.npy"))


def test_a_safetensors_file_of_several(tmp_path):
    header = json.dumps({
        name: {"dtype": "F32", "shape": [2], "data_offsets": [at, at + 8]} for name, at in (("a", 0), ("b", 8))
    }).encode()  # fmt: skip
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + np.arange(4, dtype=np.float32).tobytes())
    with pytest.raises(UsageError, match="a, b"):
        SavedTensor(str(path))
    with SavedTensor(str(path), name="b") as loaded:
        assert loaded.read(loaded.info.address, 8) == np.array([2, 3], np.float32).tobytes()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["npy", "safetensors"]), st.booleans())
def test_any_bytes_are_a_file_or_a_line(tmp_path_factory, content, form, plausible):
    path = tmp_path_factory.getbasetemp() / f"any.{form}"
    start = b"\x93NUMPY\1\0" if form == "npy" else struct.pack("<Q", 20)
    path.write_bytes((start if plausible else b"") + content)
    with pytest.raises(GdbextError) as caught:
        SavedTensor(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_cut_short_says_so(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(100))
    with open(tmp_path / "x.npy", "r+b") as file:
        file.truncate(200)
    with pytest.raises(GdbextError, match="cut short"):
        SavedTensor(str(tmp_path / "x.npy"))

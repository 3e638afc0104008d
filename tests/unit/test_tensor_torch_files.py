"""Tensors in files that torch.save wrote, read without torch."""

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict

import pytest
import torch

from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.index import view_of
from gdbext.analysis.tensors.read_blocks import Stream
from gdbext.analysis.tensors.tensor_files import SavedTensor
from gdbext.model.errors import GdbextError, UsageError

TYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
    "complex64": torch.complex64,
    "complex128": torch.complex128,
    "uint16": torch.uint16,
    "uint32": torch.uint32,
    "uint64": torch.uint64,
    "fp8_e4m3fn": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}


def save(tmp_path, value, **options):
    path = tmp_path / "Pass00001.pt"
    torch.save(value, path, **options)
    return str(path)


def numbers(saved):
    dtype = view_of(saved.info).dtype
    return [value for chunk in Stream(view_of(saved.info), saved.read) for value in decode.values(chunk.data, dtype)]


@pytest.mark.parametrize(("name", "dtype"), TYPES.items(), ids=TYPES)
def test_each_type(tmp_path, name, dtype):
    tensor = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    with SavedTensor(save(tmp_path, tensor)) as saved:
        assert (saved.info.dtype, saved.info.shape, saved.info.kind) == (name, (2, 3), "pt")
        assert numbers(saved) == [0, 1, 1, 1, 0, 1]


def test_views_share_their_storage(tmp_path):
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    path = save(tmp_path, {"part": base[1:3, 2:4], "turned": base.T, "one": base[3, 5], "none": base[:0]})
    for name, wanted in (("part", [8, 9, 14, 15]), ("turned", base.T.flatten().tolist()), ("one", [23]), ("none", [])):
        with SavedTensor(path, name=name) as saved:
            assert numbers(saved) == wanted


def test_names_in_nested_containers(tmp_path):
    value = {"model.norm": torch.ones(2), "list": [torch.zeros(1), {"deep": torch.ones(3)}], "meta": {"step": 3}}
    with pytest.raises(UsageError) as error:
        SavedTensor(save(tmp_path, value))
    assert "holds 3 tensors; name one of them, " in str(error.value)
    assert str(error.value).endswith("model.norm, list.0, list.1.deep")
    with pytest.raises(UsageError, match=r"holds no tensor model\.norn; name one of them"):
        SavedTensor(save(tmp_path, value), name="model.norn")
    with SavedTensor(save(tmp_path, value), name="list.1.deep") as saved:
        assert saved.info.shape == (3,)


@pytest.mark.parametrize(
    "value",
    [
        OrderedDict(weight=torch.ones(2)),
        {"weight": torch.nn.Parameter(torch.ones(2))},
        torch.nn.Linear(1, 2, bias=False).state_dict(),
        {
            "value": torch.ones(2),
            "meta": {"dtype": torch.float32, "size": torch.Size([2]), "device": torch.device("cpu")},
        },
    ],
    ids=["ordered", "parameter", "state dict", "with things nobody knows"],
)
def test_what_stands_around_tensors(tmp_path, value):
    with SavedTensor(save(tmp_path, value)) as saved:
        assert saved.info.shape in ((2,), (2, 1))


def archive(tmp_path, data, members=None, compression=zipfile.ZIP_STORED):
    path = tmp_path / "made.pt"
    with zipfile.ZipFile(path, "w", compression) as made:
        made.writestr("made/data.pkl", data)
        for name, content in (members or {"data/0": b"\0" * 16}).items():
            made.writestr(f"made/{name}", content)
    return str(path)


class Mark:
    """What torch writes for a storage."""


class Torch(pickle.Pickler):
    def persistent_id(self, value):
        return ("storage", torch.FloatStorage, "0", "cpu", 4) if isinstance(value, Mark) else None


def rebuilt(offset=0, shape=(4,), strides=(1,)):
    """A pickle that rebuilds a tensor from these words, as torch writes it."""

    class Tensor:
        def __reduce__(self):
            return torch._utils._rebuild_tensor_v2, (Mark(), offset, shape, strides, False, OrderedDict())

    file = io.BytesIO()
    Torch(file, 2).dump(Tensor())
    return file.getvalue()


class Harm:
    def __reduce__(self):
        return os.system, ("touch /tmp/gdbext-was-here",)


def test_nothing_in_a_file_is_executed(tmp_path):
    path = save(tmp_path, {"a": torch.ones(2), "harm": Harm()})
    with SavedTensor(path) as saved:
        assert numbers(saved) == [1, 1]
    assert not os.path.exists("/tmp/gdbext-was-here")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02." * 3,
        b"\x80\x02c" + b"x" * 5000,
        b"\x80\x02R.",
        b"\x80\x02)Q.",
        rebuilt(offset=1),
        rebuilt(shape=(5,)),
        rebuilt(shape=(2, 2)),
        rebuilt(shape=(-4,)),
        rebuilt(strides=(-1,)),
        rebuilt(shape=(2,), strides=(1 << 40,)),
        rebuilt(offset=1 << 62),
        rebuilt()[:-20],
        b"(" * 100_000 + b"]" * 100_000 + b".",
    ],
    ids=range(15),
)
def test_damaged_pickles(tmp_path, data):
    with pytest.raises(GdbextError):
        SavedTensor(archive(tmp_path, data))


def test_a_pickle_that_was_made_here_is_read(tmp_path):
    path = archive(tmp_path, rebuilt(1, (3,)), {"data/0": struct.pack("<4f", 1, 2, 3, 4)})
    with SavedTensor(path) as saved:
        assert numbers(saved) == [2, 3, 4]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda folder: archive(folder, rebuilt(), {"x": b""}), "it has no data/0"),
        (lambda folder: archive(folder, rebuilt(), compression=zipfile.ZIP_DEFLATED), "its members are compressed"),
        (lambda folder: archive(folder, rebuilt(), {"data/0": b"\0" * 16, "byteorder": b"big"}), "big-endian"),
        (
            lambda folder: save(folder, torch.ones(2), _use_new_zipfile_serialization=False),
            "not an archive of torch.save",
        ),
        (lambda folder: save(folder, {"a": 1}), "it holds no tensor"),
    ],
    ids=["no data", "compressed", "big-endian", "old format", "no tensor"],
)
def test_files_of_other_kinds(tmp_path, made, said):
    with pytest.raises(GdbextError, match=said):
        SavedTensor(made(tmp_path))

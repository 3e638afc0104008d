"""Rows of tensor layouts: they name things that exist, agree with each other and with the facts they come from."""

import re

import pytest

from gdbext.knowledge.all_tensor_layouts import (
    DICTS,
    DTYPE_TABLES,
    LAYOUTS,
    PLACE_TABLES,
    RELEASES,
    SEQUENCES,
    STRUCTS,
    WRAPPERS,
)
from gdbext.knowledge.dtypes import DTYPES
from gdbext.knowledge.engines.llama_cpp import layouts as ggml
from gdbext.knowledge.engines.torch import layouts as torch
from gdbext.knowledge.engines.turbomind import layouts as turbomind

WITHOUT_ROW = {
    *("invalid", "string", "void"),  # the engine's word for what has no values
    *("longdouble", "clongdouble", "object", "bytes", "str", "datetime64", "timedelta64"),  # numpy's
}
PLACES = {"cpu", "pinned", "gpu", "npu", "meta", "managed", ""}


@pytest.mark.parametrize("table", DTYPE_TABLES.values(), ids=list(DTYPE_TABLES))
def test_every_meaning_of_an_enumerator_is_a_dtype(table):
    meanings = {*table.names.values(), *table.numbers.values()}
    assert {meaning.partition("*")[0] for meaning in meanings} <= {*DTYPES, *WITHOUT_ROW}
    assert table.names and table.source


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.id)
def test_a_layout_can_be_read(layout):
    re.compile(layout.type)
    assert layout.source
    if layout.interface:
        return
    assert layout.shape or layout.count
    assert not layout.dtypes or layout.dtypes in DTYPE_TABLES
    assert not layout.places or layout.places in PLACE_TABLES
    assert bool(layout.dtype) == bool(layout.dtypes)
    assert bool(layout.place) == bool(layout.places) or layout.place_by_type
    assert layout.strides_unit in ("elements", "bytes")
    for pattern, place in layout.place_by_type:
        re.compile(pattern)
        assert place in PLACES


def test_no_type_belongs_to_two_layouts():
    names = (
        *("at::Tensor", "c10::TensorImpl", "c10::UndefinedTensorImpl", "fastertransformer::Tensor", "triton::Tensor"),
        *("rtp_llm::Buffer", "rtp_llm::QBuffer", "fastertransformer::Buffer", "turbomind::Tensor", "ggml_tensor"),
        *("turbomind::core::Tensor", "turbomind::core::Buffer", "tensorrt_llm::runtime::ITensor"),
        *("tensorrt_llm::runtime::GenericTensor", "tensorrt_llm::common::Tensor", "mindspore::tensor::Tensor"),
    )
    for name in names:
        rows = [row.id for row in LAYOUTS if re.fullmatch(row.type, name)]
        rows += [row.type for row in WRAPPERS if re.fullmatch(row.type, name)]
        assert len(rows) == 1, (name, rows)


def test_patterns_of_holders_are_regular_expressions():
    for row in (*WRAPPERS, *SEQUENCES, *DICTS):
        re.compile(row.type)
        assert row.source


@pytest.mark.parametrize("row", STRUCTS, ids=lambda row: f"{row.id} {row.releases[0]}")
def test_members_lie_inside_of_their_struct_and_apart(row):
    """The kind of mistake that a table of offsets has: two members at one place, or one behind the end."""
    check_struct(row, STRUCTS)


@pytest.mark.parametrize("release", RELEASES, ids=lambda row: row.id)
def test_tables_of_release_builds(release):
    assert len({row.id for row in release.structs}) == len(release.structs)
    for row in release.structs:
        check_struct(row, release.structs)
    known = {row.id for row in release.structs}
    assert known.issuperset(release.tensors) and known.issuperset(release.same.values()) and release.source
    for tensor in release.tensors:
        assert any(re.fullmatch(row.type, tensor) for row in LAYOUTS)
    for pattern in (*release.names, *release.without):
        re.compile(pattern)


def test_no_two_tables_of_release_builds_have_one_name():
    assert len({row.id for row in RELEASES}) == len(RELEASES)


def check_struct(row, structs):
    sizes = {"char": 1, "pointer": 8, **{f"{sign}{bits}": bits // 8 for sign in "iu" for bits in (8, 16, 32, 64)}}
    inner = {one.id: one.size for one in structs}
    places = []
    for name, field in row.fields.items():
        size = (sizes.get(field.type) or inner[field.type]) * max(1, field.count)
        assert field.offset + size <= row.size, name
        assert not field.to or field.to in sizes or field.to.rstrip("*") in inner or field.to == "ggml_backend_buffer"
        places.append((field.offset, field.offset + size))
    if row.id in ("c10::impl::SizesAndStrides", "PyArrayObject"):
        return  # a union: the pointer lies over the numbers; two sequences with one count
    places.sort()
    assert all(end <= start for (_, end), (start, _) in zip(places, places[1:]))


@pytest.mark.parametrize(
    "release, size, sizes, offset, numel, dtype, device, storage_size, allocator",
    [
        ("2.1", 192, 72, 160, 168, 176, 178, 96, 72),
        ("2.4", 184, 64, 152, 160, 168, 170, 88, 64),
        ("2.6", 184, 64, 152, 160, 168, 170, 96, 64),
        ("2.13", 176, 56, 144, 152, 160, 162, 96, 72),
    ],
)
def test_torch_offsets_are_those_measured(release, size, sizes, offset, numel, dtype, device, storage_size, allocator):
    """The table of facts, written down a second time: rows are computed from a few numbers each."""
    impl, storage = (
        next(row for row in STRUCTS if row.id == id and row.releases[0] == release)
        for id in ("c10::TensorImpl", "c10::StorageImpl")
    )
    assert (impl.size, storage.size) == (size, storage_size)
    fields = {name: field.offset for name, field in impl.fields.items()}
    first = 24 if release == "2.1" else 16
    assert fields == {
        "storage_": first,
        "autograd_meta_": first + 8,
        "pyobj_slot_": first + 32,
        "sizes_and_strides_": sizes,
        "storage_offset_": offset,
        "numel_": numel,
        "data_type_": dtype,
        "device_opt_": device,
    }
    assert {name: field.offset for name, field in storage.fields.items()} == {
        "data_ptr_": first,
        "size_bytes_": first + 32,
        "allocator_": allocator,
    }


def test_numbers_of_torch_types_are_their_order():
    numbers = torch.DTYPES.numbers
    assert [numbers[number] for number in (0, 5, 6, 11, 15, 24, 44)] == [
        *("uint8", "fp16", "fp32", "bool", "bf16", "fp8_e4m3fn", "fp8_e8m0")
    ]
    assert numbers[45] == "fp4_e2m1*2"
    assert len(numbers) == 47


def test_turbomind_numbers_say_their_format():
    """sign << 16 | exponent << 8 | mantissa, and the width where there is no exponent."""
    for number, name in turbomind.DTYPES.numbers.items():
        row = DTYPES.get(name)
        if row is None or name == "bool" or number == 7:  # 1 is a truth value of a byte, 7 an address
            continue
        sign, exponent, mantissa = number >> 16, number >> 8 & 0xFF, number & 0xFF
        assert row.bits == (1 + exponent + mantissa if exponent else mantissa)
        assert (row.kind == "float") == bool(exponent)
        if not exponent:
            assert (row.kind == "int") == bool(sign)


def test_every_ggml_type_has_a_name_and_a_number():
    numbers = ggml.DTYPES.numbers
    assert sorted(numbers) == [0, 1, 2, 3, *range(6, 31), 34, 35, 39, 40, 41, 42]
    assert ggml.DTYPES.names["GGML_TYPE_Q4_K"] == numbers[12] == "q4_k"
    assert set(ggml.DTYPES.names.values()) == set(numbers.values())

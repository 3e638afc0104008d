"""Every bit pattern of every small type against implementations that are not ours."""

import math
import struct

import gguf
import ml_dtypes
import numpy as np
import pytest
import torch

from gdbext.analysis.tensors.decoding import decode, ggml_blocks
from gdbext.analysis.tensors.decoding.small_floats import float_of
from gdbext.knowledge.dtypes import ALIASES, DTYPES, ROWS, dtype_named

PEERS = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
    "fp8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "fp8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "fp8_e8m0": ml_dtypes.float8_e8m0fnu,
    "fp6_e2m3": ml_dtypes.float6_e2m3fn,
    "fp6_e3m2": ml_dtypes.float6_e3m2fn,
    "fp4_e2m1": ml_dtypes.float4_e2m1fn,
}
TORCH = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8_e4m3fn": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
    "fp8_e4m3fnuz": torch.float8_e4m3fnuz,
    "fp8_e5m2fnuz": torch.float8_e5m2fnuz,
    "fp8_e8m0": torch.float8_e8m0fnu,
    "uint8": torch.uint8,
    "int8": torch.int8,
    "int16": torch.int16,
    "uint16": torch.uint16,
}
BLOCKS = {
    "q4_0": "Q4_0",
    "q4_1": "Q4_1",
    "q5_0": "Q5_0",
    "q5_1": "Q5_1",
    "q8_0": "Q8_0",
    "q4_k": "Q4_K",
    "q6_k": "Q6_K",
    "mxfp4": "MXFP4",
    "q2_k": "Q2_K",
    "q3_k": "Q3_K",
    "q5_k": "Q5_K",
    "iq4_nl": "IQ4_NL",
    "iq4_xs": "IQ4_XS",
    "tq1_0": "TQ1_0",
    "tq2_0": "TQ2_0",
    "nvfp4": "NVFP4",
}


def all_patterns(dtype):
    """Elements with every bit pattern of the dtype, as `values` takes them."""
    if dtype.bits > 8:
        return struct.pack("<65536H", *range(65536))
    return bytes(range(1 << dtype.bits))


def assert_same(ours, theirs):
    """Equal bit for bit as doubles, any NaN being as good as another."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is cast
        ours, theirs = np.array(ours, np.float64), np.array(theirs, np.float64)
    nan = np.isnan(theirs)
    assert (np.isnan(ours) == nan).all()
    assert (ours.view(np.uint64)[~nan] == theirs.view(np.uint64)[~nan]).all()


@pytest.mark.parametrize("name", PEERS)
def test_all_patterns_of_floats_as_numpy_and_ml_dtypes_have_them(name):
    data = all_patterns(DTYPES[name])
    with np.errstate(invalid="ignore"):
        theirs = np.frombuffer(data, PEERS[name]).astype(np.float64)
    assert_same(decode.values(data, DTYPES[name]), theirs)
    assert_same([float_of(pattern, DTYPES[name]) for pattern in range(len(theirs))], theirs)


@pytest.mark.parametrize("name", TORCH)
def test_all_patterns_as_torch_has_them(name):
    data = all_patterns(DTYPES[name])
    theirs = torch.frombuffer(bytearray(data), dtype=TORCH[name]).to(torch.float64).numpy()
    assert_same(decode.values(data, DTYPES[name]), theirs)


def test_every_float_row_of_16_bits_or_fewer_has_a_peer():
    assert {row.name for row in ROWS if row.kind == "float" and row.bits <= 16} == set(PEERS)


@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_wide_floats_by_rule_and_by_machine(name):
    rng = np.random.default_rng(3)
    dtype = DTYPES[name]
    data = rng.bytes(dtype.unit * 20_000)
    patterns = np.frombuffer(data, f"<u{dtype.unit}")
    theirs = np.frombuffer(data, f"<f{dtype.unit}")
    with np.errstate(invalid="ignore"):
        assert_same(decode.values(data, dtype), theirs.astype(np.float64))
        assert_same([float_of(int(pattern), dtype) for pattern in patterns], theirs.astype(np.float64))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_whole_integers(kind, bits):
    data = np.random.default_rng(1).bytes(bits // 8 * 1000)
    ours = list(decode.values(data, DTYPES[f"{kind}{bits}"]))
    assert ours == np.frombuffer(data, f"{kind}{bits}").tolist()


@pytest.mark.parametrize("bits", range(1, 8))
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_packed_integers_as_a_bit_string_has_them(kind, bits):
    dtype = DTYPES[f"{kind}{bits}"]
    data = np.random.default_rng(2).bytes(dtype.unit * 500)
    whole = int.from_bytes(data, "little")
    expected = []
    for _ in range(500 * dtype.per_unit):
        value = whole & ((1 << bits) - 1)
        whole >>= bits
        expected.append(value - (1 << bits) if kind == "int" and value >> (bits - 1) else value)
    assert list(decode.values(decode.expand(data, dtype), dtype)) == expected
    assert whole == 0
    padded = DTYPES[f"{kind}{bits}_byte"]
    codes = bytes(value & ((1 << bits) - 1) for value in expected)
    assert list(decode.values(codes, padded)) == expected


@pytest.mark.parametrize("name", ["int2", "int4", "uint2", "uint4"])
def test_packed_integers_as_ml_dtypes_has_them(name):
    dtype = DTYPES[name]
    data = bytes(range(256))
    ours = decode.values(decode.expand(data, dtype), dtype)
    lanes = [np.frombuffer(data, np.uint8) >> (dtype.bits * lane) for lane in range(dtype.per_unit)]
    codes = np.stack(lanes, 1).reshape(-1) & ((1 << dtype.bits) - 1)
    theirs = codes.astype(np.uint8).view(getattr(ml_dtypes, name)).astype(np.int64)
    assert list(ours) == theirs.tolist()


def test_nibble_order_is_a_field():
    assert list(decode.values(decode.expand(b"\x21", DTYPES["uint4"]), DTYPES["uint4"])) == [1, 2]
    high_first = DTYPES["uint4_high_first"]
    assert list(decode.values(decode.expand(b"\x21", high_first), high_first)) == [2, 1]


def test_six_bit_floats_are_packed_four_to_three_bytes():
    codes = [1, 62, 33, 7]
    packed = sum(code << (6 * lane) for lane, code in enumerate(codes)).to_bytes(3, "little")
    dtype = DTYPES["fp6_e3m2"]
    assert decode.expand(packed, dtype) == bytes(codes)
    assert list(decode.values(bytes(codes), dtype)) == [float_of(code, dtype) for code in codes]


@pytest.mark.parametrize(
    "name, peer", [("complex32", torch.complex32), ("complex64", np.complex64), ("complex128", np.complex128)]
)
def test_complex(name, peer):
    dtype = DTYPES[name]
    parts = np.random.default_rng(4).normal(size=200)
    part = {4: np.float16, 8: np.float32, 16: np.float64}[dtype.unit]
    data = parts.astype(part).tobytes()
    if name == "complex32":
        theirs = torch.frombuffer(bytearray(data), dtype=peer).to(torch.complex128).numpy()
    else:
        theirs = np.frombuffer(data, peer)
    assert list(decode.values(data, dtype)) == theirs.tolist()


def test_complex_of_bf16():
    data = np.array([1.5, -2.0, 0.25, 3.0], ml_dtypes.bfloat16).tobytes()
    assert decode.values(data, DTYPES["bcomplex32"]) == [1.5 - 2j, 0.25 + 3j]


def test_bool_is_true_for_any_byte_but_zero():
    assert list(decode.values(b"\0\1\2\xff", DTYPES["bool"])) == [False, True, True, True]


@pytest.mark.parametrize("numpy", [None, np], ids=["lists", "numpy"])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_as_gguf_has_them(name, numpy):
    dtype = DTYPES[name]
    kind = gguf.GGMLQuantizationType[BLOCKS[name]]
    assert gguf.GGML_QUANT_SIZES[kind] == (dtype.per_unit, dtype.unit)
    data = np.random.default_rng(5).integers(0, 256, 400 * dtype.unit, np.uint8)
    with np.errstate(all="ignore"):
        theirs = gguf.dequantize(data.reshape(400, dtype.unit), kind).reshape(-1)
    ours = np.frombuffer(ggml_blocks.dequantise(data.tobytes(), dtype, numpy), np.float32)
    assert_same(ours, theirs)


def test_block_sizes_of_types_that_are_only_known_by_name():
    for row in ROWS:
        kind = getattr(gguf.GGMLQuantizationType, row.name.upper(), None)
        if row.name == "q8_1":  # 40 in gguf-py, from before its two fp32 scales became fp16; ggml-common.h says 36
            assert (row.per_unit, row.unit) == (32, 36)
        elif kind is not None and row.kind in ("block", "opaque"):
            assert gguf.GGML_QUANT_SIZES[kind] == (row.per_unit, row.unit), row.name
            assert row.decoded or "does not" in row.about


def test_names():
    assert dtype_named("torch.bfloat16") is DTYPES["bf16"]
    assert dtype_named("Half") is DTYPES["fp16"]
    assert dtype_named("float31") is None
    assert set(ALIASES.values()) <= set(DTYPES)
    assert not set(ALIASES) & set(DTYPES)
    assert len(DTYPES) == len(ROWS)


def test_bytes_of_a_count():
    assert DTYPES["int4"].nbytes(5) == 3
    assert DTYPES["fp6_e2m3"].nbytes(4) == 3
    assert DTYPES["q4_k"].nbytes(512) == 288
    assert DTYPES["fp64"].nbytes(0) == 0


def test_number_formats_tell_the_width_of_the_mantissa():
    assert (DTYPES["fp16"].number.mantissa, DTYPES["fp16"].number.least_exponent) == (10, -14)
    assert DTYPES["complex64"].number.kind == "complex"
    assert DTYPES["q4_0"].number.mantissa == 23
    limit, there = decode.subnormal_limit(DTYPES["fp16"])
    assert there and math.isclose(limit, float(np.finfo(np.float16).smallest_normal))

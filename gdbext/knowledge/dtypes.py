"""Element types of tensors: how many bits, what they mean, and which can be decoded.

Names are those of `TensorInfo.dtype`. Which enumerator of which engine is which of these rows is said beside the
layouts. Sources: IEEE 754; OCP 8-bit floating point 1.0 (e4m3fn, e5m2); OCP microscaling formats 1.0 (e8m0, fp6, fp4,
MXFP4); Graphcore/AMD "8-bit numerical formats" 2022 (fnuz); ggml-common.h of ggml 0.25.3 (block types).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Tuple

from gdbext.knowledge.word_tables import pairs
from gdbext.model.tensor import NumberFormat


@dataclass(frozen=True)
class DType:
    """One element type. Values are stored in units of `unit` bytes that hold `per_unit` values each.

    `specials` says what the bit patterns at the ends of a float type mean: "ieee" (infinities and NaN in the highest
    exponent), "fn" (finite; NaN is all ones, no infinity), "fnuz" (finite; NaN is the pattern of -0), "none" (all
    patterns are numbers), "e8m0" (an exponent alone, all ones is NaN).
    """

    name: str
    kind: str  # "bool", "uint", "int", "float", "complex", "block", or "opaque": known, but not decoded
    bits: int  # of one value (both parts of a complex one); of a block type: of the values it stands for
    exponent: int = 0
    mantissa: int = 0
    bias: int = 0
    specials: str = "ieee"
    signed: bool = True  # floats only: ue8m0 has no sign
    per_unit: int = 1
    unit: int = 0
    high_first: bool = False  # the first of the values packed in a byte lies in its high bits
    part: Optional[str] = None  # of a complex type: the dtype of its two parts
    about: str = ""  # what an opaque type is

    @property
    def decoded(self) -> bool:
        """Whether values can be shown."""
        return self.kind != "opaque"

    @property
    def packed(self) -> bool:
        """Whether several values share a byte (and are unpacked to one byte each when read in bulk)."""
        return self.per_unit > 1 and self.kind != "block"

    @property
    def number(self) -> NumberFormat:
        """How its values are written."""
        if self.kind == "complex":
            part = DTYPES[self.part or "fp32"]
            return NumberFormat("complex", part.mantissa, 1 - part.bias)
        if self.kind == "block":  # dequantised to fp32
            return NumberFormat("float", 23, -126)
        if self.kind == "float":
            return NumberFormat("float", self.mantissa, 1 - self.bias)
        return NumberFormat({"bool": "bool", "opaque": "bytes"}.get(self.kind, "int"))

    def nbytes(self, count: int) -> int:
        """Bytes of `count` values stored without gaps."""
        return -(-count // self.per_unit) * self.unit


def _integers(kind: str, prefix: str) -> Tuple[DType, ...]:
    whole = tuple(DType(f"{prefix}{bits}", kind, bits, unit=bits // 8) for bits in (8, 16, 32, 64))
    # n values in n * bits / 8 bytes, the first one in the lowest bits (TurboMind, RTP-LLM, safetensors)
    packed = tuple(
        DType(f"{prefix}{bits}", kind, bits, per_unit=per_unit, unit=unit)
        for bits, per_unit, unit in ((1, 8, 1), (2, 4, 1), (3, 8, 3), (4, 2, 1), (5, 8, 5), (6, 4, 3), (7, 8, 7))
    )
    # torch's uint1 .. int7 take a byte each
    padded = tuple(DType(f"{prefix}{bits}_byte", kind, bits, unit=1) for bits in range(1, 8))
    return whole + packed + padded


def _float(name: str, exponent: int, mantissa: int, specials: str = "ieee", bias: Optional[int] = None) -> DType:
    bits = 1 + exponent + mantissa
    usual = (1 << (exponent - 1)) - 1
    per_unit, unit = {4: (2, 1), 6: (4, 3)}.get(bits, (1, bits // 8))
    return DType(
        name, "float", bits, exponent, mantissa, usual if bias is None else bias, specials, per_unit=per_unit, unit=unit
    )


def _complex(name: str, part: str, bits: int) -> DType:
    return DType(name, "complex", bits, unit=bits // 8, part=part)


def _block(name: str, values: int, unit: int, decoded: bool = False) -> DType:
    about = "" if decoded else f"a ggml block of {values} values in {unit} bytes, which gdbext does not dequantise"
    return DType(name, "block" if decoded else "opaque", 32, per_unit=values, unit=unit, about=about)


ROWS: Tuple[DType, ...] = (
    DType("bool", "bool", 8, unit=1),
    *_integers("uint", "uint"),
    *_integers("int", "int"),
    DType("int4_high_first", "int", 4, per_unit=2, unit=1, high_first=True),
    DType("uint4_high_first", "uint", 4, per_unit=2, unit=1, high_first=True),
    _float("fp16", 5, 10),
    _float("bf16", 8, 7),
    _float("fp32", 8, 23),
    _float("fp64", 11, 52),
    _float("fp8_e4m3fn", 4, 3, "fn"),
    _float("fp8_e5m2", 5, 2),
    _float("fp8_e4m3fnuz", 4, 3, "fnuz", 8),
    _float("fp8_e5m2fnuz", 5, 2, "fnuz", 16),
    DType("fp8_e8m0", "float", 8, 8, 0, 127, "e8m0", signed=False, unit=1),
    _float("fp6_e2m3", 2, 3, "none"),
    _float("fp6_e3m2", 3, 2, "none"),
    _float("fp4_e2m1", 2, 1, "none"),
    _complex("complex32", "fp16", 32),
    _complex("bcomplex32", "bf16", 32),
    _complex("complex64", "fp32", 64),
    _complex("complex128", "fp64", 128),
    # ggml: values and bytes per block
    _block("q4_0", 32, 18, True),
    _block("q4_1", 32, 20, True),
    _block("q5_0", 32, 22, True),
    _block("q5_1", 32, 24, True),
    _block("q8_0", 32, 34, True),
    _block("q4_k", 256, 144, True),
    _block("q6_k", 256, 210, True),
    _block("mxfp4", 32, 17, True),
    _block("q8_1", 32, 36),
    _block("q2_k", 256, 84, True),
    _block("q3_k", 256, 110, True),
    _block("q5_k", 256, 176, True),
    _block("q8_k", 256, 292),
    _block("iq2_xxs", 256, 66),
    _block("iq2_xs", 256, 74),
    _block("iq3_xxs", 256, 98),
    _block("iq1_s", 256, 50),
    _block("iq4_nl", 32, 18, True),
    _block("iq3_s", 256, 110),
    _block("iq2_s", 256, 82),
    _block("iq4_xs", 256, 136, True),
    _block("iq1_m", 256, 56),
    _block("tq1_0", 256, 54, True),
    _block("tq2_0", 256, 66, True),
    _block("nvfp4", 64, 36, True),
    _block("q1_0", 128, 18),
    _block("q2_0", 64, 18),
    DType("hifloat8", "opaque", 8, unit=1, about="HiFloat8, whose table gdbext does not have"),
)

ALIASES: Mapping[str, str] = pairs(
    "half=fp16 float16=fp16 bfloat16=bf16 float=fp32 float32=fp32 double=fp64 float64=fp64 byte=uint8 char=int8 "
    "short=int16 int=int32 long=int64 chalf=complex32 cfloat=complex64 cdouble=complex128 fp8=fp8_e4m3fn "
    "fp8_e4m3=fp8_e4m3fn float8_e4m3fn=fp8_e4m3fn float8_e5m2=fp8_e5m2 float8_e4m3fnuz=fp8_e4m3fnuz "
    "float8_e5m2fnuz=fp8_e5m2fnuz float8_e8m0fnu=fp8_e8m0 float6_e2m3=fp6_e2m3 float6_e3m2=fp6_e3m2 fp4=fp4_e2m1 "
    "float4_e2m1=fp4_e2m1 f16=fp16 f32=fp32 f64=fp64 u8=uint8 u16=uint16 u32=uint32 u64=uint64 i8=int8 i16=int16 "
    "i32=int32 i64=int64"
)
"""What people type for `--dtype`: torch's, safetensors' and C's words (lower case, a leading `torch.` dropped)."""

DTYPES: Dict[str, DType] = {row.name: row for row in ROWS}


def dtype_named(name: str) -> Optional[DType]:
    """The row of a name or alias, in any case; None when there is none."""
    word = name.strip().lower()
    word = word[len("torch.") :] if word.startswith("torch.") else word
    return DTYPES.get(ALIASES.get(word, word))

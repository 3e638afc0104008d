"""ggml's formats of blocks of 256 values: the K family and the ternary ones. Columns and sources: ggml_blocks.py."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Tuple


def _six_bits(blocks: Any, at: int, group: int) -> Tuple[Any, Any]:
    """The scale and the minimum of one of eight groups, from the twelve bytes at `at`; the upper two bits of the last
    four groups' stand in the spare bits of the first four's."""
    if group < 4:
        return blocks.byte(at + group) & 63, blocks.byte(at + 4 + group) & 63
    low = blocks.byte(at + 4 + group)
    scale = (low & 15) | ((blocks.byte(at - 4 + group) >> 6) << 4)
    return scale, (low >> 4) | ((blocks.byte(at + group) >> 6) << 4)


def _q2_k(blocks: Any) -> None:
    """Sixteen groups of 16, each with a byte: four bits of scale, four of minimum."""
    scale, least = blocks.half(80), blocks.half(82)
    for group in range(16):
        both = blocks.byte(group)
        step, start = scale * (both & 15), least * (both >> 4)
        half, quarter = divmod(group // 2, 4)
        for at in range(16):
            pair = blocks.byte(16 + half * 32 + group % 2 * 16 + at)
            blocks.put(group * 16 + at, step * ((pair >> (2 * quarter)) & 3) - start)


def _q3_k(blocks: Any) -> None:
    """Sixteen groups of 16, each with a scale of six bits; two low bits of a value in one place, the third, which is
    4 when it is 0, in another."""
    scale = blocks.half(108)
    for group in range(16):
        low = (blocks.byte(96 + group % 8) >> (4 * (group // 8))) & 15
        high = (blocks.byte(104 + group % 4) >> (2 * (group // 4))) & 3
        step = scale * ((low | (high << 4)) - 32)
        half, quarter = divmod(group // 2, 4)
        for at in range(16):
            lane = group % 2 * 16 + at
            two = (blocks.byte(32 + half * 32 + lane) >> (2 * quarter)) & 3
            third = (blocks.byte(lane) >> (4 * half + quarter)) & 1
            blocks.put(group * 16 + at, step * (two + (third << 2) - 4))


def _q4_k(blocks: Any) -> None:
    """Eight groups of 32, each with a scale and a minimum of six bits."""
    scale, least = blocks.half(0), blocks.half(2)
    for group in range(8):
        group_scale, group_least = _six_bits(blocks, 4, group)
        step, start = scale * group_scale, least * group_least
        for at in range(32):
            pair = blocks.byte(16 + group // 2 * 32 + at)
            blocks.put(group * 32 + at, step * ((pair >> 4) if group % 2 else (pair & 15)) - start)


def _q5_k(blocks: Any) -> None:
    """As Q4_K, with the fifth bits of all values in 32 bytes."""
    scale, least = blocks.half(0), blocks.half(2)
    for group in range(8):
        group_scale, group_least = _six_bits(blocks, 4, group)
        step, start = scale * group_scale, least * group_least
        for at in range(32):
            pair = blocks.byte(48 + group // 2 * 32 + at)
            fifth = (blocks.byte(16 + at) >> group) & 1
            low = (pair >> 4) if group % 2 else (pair & 15)
            blocks.put(group * 32 + at, step * (low | (fifth << 4)) - start)


def _q6_k(blocks: Any) -> None:
    """Sixteen groups of 16, each with a signed byte as scale; four low bits in one place, two high ones in another."""
    scale = blocks.half(208)
    for group in range(16):
        step = scale * blocks.signed(192 + group)
        half, quarter = divmod(group * 16, 128)
        quarter //= 32
        for at in range(16):
            lane = group * 16 + at
            low = blocks.byte(half * 64 + lane % 64)
            low = (low >> 4) if quarter >= 2 else (low & 15)
            high = (blocks.byte(128 + half * 32 + lane % 32) >> (2 * quarter)) & 3
            blocks.put(lane, step * ((low | (high << 4)) - 32))


def _tq1_0(blocks: Any) -> None:
    """Five values in a byte, as digits to the base three: first 32 bytes, then 16, then 4 bytes of four values."""
    scale = blocks.half(52)
    place = 0
    for first, count, digits in ((0, 32, 5), (32, 16, 5), (48, 4, 4)):
        for digit in range(digits):
            for at in range(count):
                shifted = (blocks.byte(first + at) * 3**digit) & 255
                blocks.put(place + at, scale * (((shifted * 3) >> 8) - 1))
            place += count


def _tq2_0(blocks: Any) -> None:
    scale = blocks.half(64)
    for half in range(2):
        for quarter in range(4):
            for at in range(32):
                value = (blocks.byte(half * 32 + at) >> (2 * quarter)) & 3
                blocks.put(half * 128 + quarter * 32 + at, scale * (value - 1))


K_FORMATS: Mapping[str, Callable[[Any], None]] = {
    "q2_k": _q2_k,
    "q3_k": _q3_k,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
    "tq1_0": _tq1_0,
    "tq2_0": _tq2_0,
}

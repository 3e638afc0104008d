"""The pictures of docs/report.md: pages of three made-up hangs in a headless Chromium, as small PNG files.

Run by `scripts/bench report-pictures` where the page looks different than before.
"""

import struct
import tempfile
import zlib
from pathlib import Path

from gdbext.render import page_text
from tests import page_samples
from tests.browser import chromium

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST = 150_000  # bytes
PICTURES = {
    "classic": {"width": 1160, "height": 800},
    "locks": {"width": 1160, "height": 740, "dark": True},
    "slow": {"width": 1160, "height": 720},
}


def main():
    with tempfile.TemporaryDirectory() as folder, chromium() as pages:
        for name, how in PICTURES.items():
            file = Path(folder) / f"{name}.html"
            file.write_text(page_text(page_samples.page(getattr(page_samples, name)())), "utf-8")
            pages.open(file, **how)
            target = DOCS / f"report-{name}.png"
            pages.picture(target)
            target.write_bytes(smaller(target.read_bytes()))
            size = target.stat().st_size
            assert size < MOST, f"{target} takes {size:,} bytes"
            print(f"{target.name}: {size:,} bytes")


def smaller(png):
    """The same picture, packed as well as zlib can."""
    chunks, at, packed = [], 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += 12 + length
        if kind == b"IDAT":
            packed += body
        else:
            chunks.append((kind, body))
    chunks.insert(-1, (b"IDAT", zlib.compress(zlib.decompress(packed), 9)))

    return png[:8] + b"".join(map(_chunk, chunks))


def _chunk(chunk):
    kind, body = chunk
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


if __name__ == "__main__":
    main()

"""Reports of `compute-sanitizer --xml`: read element by element, so that a cut file gives what was whole."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional
from xml.etree import ElementTree

from gdbext.knowledge.errors.compute_sanitizer import TOOLS
from gdbext.model.gpu_errors import DevicePlace, GpuError
from gdbext.model.stack import Frame
from gdbext.model.text.digits import integer_or_none
from gdbext.parsers.compute_sanitizer.report_block import MOST_FRAMES, error_of
from gdbext.parsers.compute_sanitizer.report_tally import ReportTally
from gdbext.parsers.frame_lines import Place, named_frame

ROOT = "ComputeSanitizerOutput"
_LONGEST = 4096


class XmlReport:
    """Feed it text from the root element on."""

    def __init__(self) -> None:
        self._parser: Any = ElementTree.XMLPullParser(("start", "end"))
        self._tally = ReportTally()
        self._root: Optional[ElementTree.Element] = None
        self._over = False

    def feed(self, text: str) -> bool:
        """Whether the text is of the report."""
        if self._over:
            return False
        try:
            if self._root is None:
                text = text[text.index(f"<{ROOT}") :]  # behind a document type: no entity is ever declared
            self._parser.feed(text)
            self._read()
        except ElementTree.ParseError as problem:
            self._over = True
            self._tally.trouble(f"its XML is damaged: {problem}")
        return True

    def finished(self) -> ReportTally:
        return self._tally

    def _read(self) -> None:
        for event, element in self._parser.read_events():
            if event == "start" and self._root is None:
                self._root = element
            elif event == "end" and element.tag == "record":
                self._take(element)
                if self._root is not None:
                    self._root.clear()  # of a million records none is kept
            elif event == "end" and element.tag == ROOT:
                self._tally.ended = self._over = True

    def _take(self, record: ElementTree.Element) -> None:
        text = _text(record, "what/text") or _text(record, "what") or _text(record, "kind")
        said = error_of([text]) if text else None
        size = integer_or_none(_text(record, "what/size"))
        where = list(_places(record))
        if said is None and not where:
            return
        kind = said.kind if said is not None else _kind(_text(record, "kind"))
        self._tally.add(
            GpuError(
                kind=kind,
                text=text[:300],
                tool=TOOLS.get(kind, ""),
                space=_text(record, "what/space").strip("_").lower() or (said.space if said is not None else ""),
                access=_text(record, "what/direction").lower() or (said.access if said is not None else ""),
                size=size if size is not None or said is None else said.size,
                address=_number(_text(record, "what/address")),
                problem=_problem(record),
                kernel=where[-1].function if where else "",
                places=tuple(where[:1]),
                call=said.call if said is not None else "",
                error=said.error if said is not None else "",
                device_frames=tuple(Frame(one.function or None, None, None, one.file, one.line) for one in where[1:]),
                host_frames=tuple(_frames(record)),
            )
        )


def _kind(text: str) -> str:
    """By the record's own word, where its text has none that is known."""
    lowered = text.lower()
    return next((kind for kind, tool in TOOLS.items() if tool in lowered and kind not in ("leak", "unused")), "other")


def _problem(record: ElementTree.Element) -> str:
    error = _text(record, "what/error")
    return error[:80] if integer_or_none(error) is None else ""


def _places(record: ElementTree.Element) -> Iterator[DevicePlace]:
    thread, block = _triple(record, "who/threadIdx"), _triple(record, "who/blockIdx")
    for number, place in enumerate(record.findall("where")[:MOST_FRAMES]):
        yield DevicePlace(
            function=_text(place, "func"),
            file=_joined(place),
            line=integer_or_none(_text(place, "line")) or None,
            offset=_number(_text(place, "pc")),
            thread="" if number else thread,
            block="" if number else block,
        )


def _frames(record: ElementTree.Element) -> Iterator[Frame]:
    stacks = record.findall("hostStack")
    launch = [one for one in stacks if "alloc" not in _text(one, "saveLocation").lower()]
    for frame in (launch or stacks or [record])[0].findall("frame")[:MOST_FRAMES]:
        name, file, line = _text(frame, "func"), _joined(frame), integer_or_none(_text(frame, "line")) or None
        if file.endswith((".py", ".pyx")):
            yield Frame(name, file=file, line=line, language="python")
        else:
            yield named_frame(name, Place(_text(frame, "module") or None, file or None, line))


def _joined(place: ElementTree.Element) -> str:
    return "/".join(filter(None, (_text(place, "path").rstrip("/"), _text(place, "file"))))


def _triple(record: ElementTree.Element, path: str) -> str:
    found = record.find(path)
    if found is None:
        return ""
    parts: List[str] = [(found.findtext(one) or found.get(one) or "").strip() for one in "xyz"]
    return f"({','.join(parts)})" if all(parts) else (found.text or "").strip()[:40]


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()[:_LONGEST]


def _number(text: str) -> Optional[int]:
    try:
        return int(text, 16 if text.startswith("0x") else 10) if len(text) <= 18 else None
    except ValueError:
        return None

"""What the source line of a frame calls, where a Python traceback ends in C code, which has no frame of its own."""

from __future__ import annotations

from typing import Optional

from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex

C_CODE = "<C code>"
"""The file of such a frame."""

_QUEUE = r"(?:queue|task|job|msg|message|item|result|request|inq|outq|conn|pipe)s?\b"
_CALL = regex(
    r"(?:.{0,300}?[\s.=(!])?(?P<name>recv(?:_into|from|_bytes)?|accept|select|epoll_wait|waitpid|wait4|sendall|getaddrinfo"
    r"|racquire|acquire|synchronize|item|tolist|nonzero|cpu)\("
)
_WITH_LOCK = regex(r"with (?:[\w.]{0,80}\.)?_?\w{0,40}lock\w{0,20}(?:\(\))?:")
_GET = regex(rf"{_QUEUE}.{{0,40}}= ?(?:\w+\.)?get\(|.{{0,80}}(?:queue|_q|inq|outq)\.(?:get|put)\(")
_LOCK_FILE = regex(r"(?:self\.)?(?:baton\.(?P<wait>wait)\(\)|_?(?:file_?lock|lock_?file)\.(?P<acquire>acquire)\()")
_OF_LOCK_FILES = {"wait": "torch/utils/file_baton.py", "acquire": "filelock.py"}
_JOIN = regex(r".{0,80}\b(?:proc\w*|process\w*|thread\w*|worker\w*|p|t|w)(?:\[\w{1,20}\])?\.join\((?:timeout)?")


def call_frame(line: str) -> Optional[Frame]:
    """The call of a line that may wait, as a frame; None where it has none that is known."""
    text = line.strip()
    file = _LOCK_FILE.match(text)
    if file is not None and file.lastgroup is not None:
        return Frame(file.lastgroup, file=_OF_LOCK_FILES[file.lastgroup], language="python")
    if _GET.match(text):
        name: Optional[str] = "get"
    elif _JOIN.match(text):
        name = "join"
    elif _WITH_LOCK.match(text):
        name = "acquire"
    else:
        found = _CALL.match(text)
        name = found.group("name") if found else None
    return Frame(name, file=C_CODE, language="python") if name else None

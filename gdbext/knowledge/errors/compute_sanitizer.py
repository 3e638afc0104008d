"""Reports of compute-sanitizer and cuda-memcheck: their first lines, and what each kind of error means for a verdict.

Four generations of text: cuda-memcheck, 2020.x to 2021.2, 2021.3 to 2023.2, and 2023.3 on.
"""

from typing import Mapping, NamedTuple, Tuple

_MANUAL = "Compute Sanitizer manual, NVIDIA"


GPU_CORE = "gpu-core"
"""`GpuError.tool` of what a GPU core shows, and no sanitizer."""


class ReportRow(NamedTuple):
    """The first line of a report, without the tool's prefix. Groups: space, access, size, call, error, number, address,
    hazards, and place for the first side of a race."""

    kind: str
    pattern: str
    source: str


class KindRow(NamedTuple):
    """What an error of that kind means: for a person, and for the verdict. An error that ends the context is the GPU's;
    what only makes numbers wrong has no label of its own."""

    means: str
    cause: str
    confidence: str
    ends_work: bool


_LEVEL = r"(?:(?:Error|Warning|Info|ERROR|WARN|WARNING|INFO): ?(?:\([^()]{1,60}\) ?)?)?"

HEADS: Tuple[ReportRow, ...] = (
    ReportRow(
        "invalid-access",
        _LEVEL + r"Invalid (?:__(?P<space>\w{1,40}?)__ )?(?P<access>read|write|atomic|\w{1,20})(?: access)? of size "
        r"(?P<size>[\d,]{1,20})(?: bytes?)?",
        _MANUAL + ", memcheck",
    ),
    ReportRow(
        "uninitialized",
        _LEVEL + r"Uninitialized (?:__(?P<space>\w{1,40}?)__ )?(?:memory )?(?P<access>read|access)(?: of size "
        r"(?P<size>[\d,]{1,20})(?: bytes?)?)?",
        _MANUAL + ", initcheck",
    ),
    ReportRow(
        "uninitialized",
        _LEVEL + r"Host API uninitialized memory (?P<access>access)",
        _MANUAL + ", initcheck",
    ),
    ReportRow(
        "host-api-access",
        _LEVEL + r"Host API memory access error(?: at host access to (?P<address>0x[0-9a-fA-F]{1,16}))?"
        r"(?: of size (?P<size>[\d,]{1,20})(?: bytes?)?)?",
        _MANUAL + ", memcheck",
    ),
    ReportRow("barrier", _LEVEL + r"Barrier error detected\. ?", _MANUAL + ", synccheck"),
    ReportRow(
        "race",
        _LEVEL + r"Race reported between (?P<access>Read|Write|Atomic|Memory) access at (?P<place>.{1,8000})",
        _MANUAL + ", racecheck, analysis reports",
    ),
    ReportRow(
        "race",
        _LEVEL
        + r"Potential (?:RAW|WAR|WAW) hazard detected at __(?P<space>\w{1,40}?)__ (?P<address>0x[0-9a-fA-F]{1,16})",
        _MANUAL + ", racecheck, hazard reports",
    ),
    ReportRow(
        "leak",
        _LEVEL + r"Leaked (?P<size>[\d,]{1,20}) bytes(?: at (?P<address>0x[0-9a-fA-F]{1,16}))?",
        _MANUAL + ", memcheck --leak-check",
    ),
    ReportRow(
        "unused",
        _LEVEL + r"(?:Unused memory in allocation|Unused (?P<size>[\d,]{1,20}) bytes)",
        _MANUAL + ", initcheck --track-unused-memory",
    ),
    ReportRow(
        "api-error",
        _LEVEL + r"Program hit (?P<error>\w{1,80}) (?:\(error (?P<number>\d{1,6})\) )?(?:due to .{0,400} )?on CUDA API"
        r" call to (?P<call>\w{1,80})",
        _MANUAL + ", --report-api-errors",
    ),
    ReportRow(
        "api-error",
        _LEVEL + r"Program hit error (?P<number>\d{1,6}) on CUDA API call to (?P<call>\w{1,80})",
        "cuda-memcheck",
    ),
    ReportRow(
        "invalid-free",
        _LEVEL + r"(?:Malloc/Free [Ee]rror encountered|Invalid free|Double free)",
        _MANUAL + ", memcheck",
    ),
    ReportRow(
        "device-fault",
        _LEVEL + r"(?:Fatal UVM (?:GPU|CPU) fault|Warp (?:Assert|Illegal|Out-of-range|Misaligned|Invalid)|Illegal "
        r"instruction|(?:Lane|Device|Warp) (?:User )?[Ss]tack overflow|Stack overflow|Stack canary|Invalid PC"
        r"|Out-of-range Shared or Local Address|Unknown Error|Invalid address space|Malformed instruction)",
        _MANUAL + ", memcheck, hardware exceptions",
    ),
)
"""On one line the first that matches decides."""

KINDS: Mapping[str, KindRow] = {
    "invalid-access": KindRow("a kernel reads or writes where it must not", "gpu-fault", "high", True),
    "device-fault": KindRow("a kernel made the hardware stop it", "gpu-fault", "high", True),
    "other": KindRow("the sanitizer reports an error of a kernel", "other", "low", False),
    "invalid-free": KindRow("memory is freed twice, or was never allocated", "other", "medium", False),
    "host-api-access": KindRow("a copy or fill by the host leaves its allocation", "other", "medium", False),
    "race": KindRow("threads of a block use shared memory without an order between them", "other", "medium", False),
    "uninitialized": KindRow("memory is read that nothing has written", "other", "medium", False),
    "barrier": KindRow(
        "threads do not all come to a barrier; kernels whose warps have different work show this without a fault",
        "other",
        "low",
        False,
    ),
    "api-error": KindRow("a call of CUDA returned an error", "other", "low", False),
    "leak": KindRow("memory was not freed before the context ended", "other", "low", False),
    "unused": KindRow("memory was allocated and never written", "other", "low", False),
}
"""The gravest first."""

TOOLS: Mapping[str, str] = {
    "invalid-access": "memcheck",
    "device-fault": "memcheck",
    "invalid-free": "memcheck",
    "host-api-access": "memcheck",
    "leak": "memcheck",
    "race": "racecheck",
    "uninitialized": "initcheck",
    "unused": "initcheck",
    "barrier": "synccheck",
}
"""Which tool of the sanitizer reports what; an error of the API all of them."""

NOT_PRINTED = r"([\d,]{1,20}) errors? (?:were|was) not printed"
SUMMARY = r"ERROR SUMMARY: ([\d,]{1,20}) errors?"
ENDS = r"(?:ERROR|RACECHECK|SYNCCHECK|INITCHECK) SUMMARY: |No attached process found"
BANNER = r"(?:COMPUTE-SANITIZER|CUDA-MEMCHECK)\Z"
TOOL_PROBLEMS = (
    r"(?:Target application (?:terminated|returned)|Internal (?:\w{1,20} )?[Ee]rror|Error: |Unable to |Failed to "
    r"|The application (?:may|did)|Process didn't terminate)"
)
"""Lines of the tool about itself."""

OTHER_SIDE = r"and (Read|Write|Atomic|Memory) access at (.{1,8000})"
UNWRITTEN = r"Uninitialized access (?:at|to) 0x[0-9a-fA-F]{1,16} on access by (\w{1,80})"
"""Below the first line of a host access: it was no wrong address. Calls: cudaMemcpy, cudaMemcopy, cudaMemset."""
DETAIL = r"(?:at |in |by thread|Address |Access |and |Host Frame:|Device Frame:|Saved host backtrace|Host backtrace)"
"""How a line begins that is not the first of its report."""
HAZARD_SIDE = r"(Read|Write|Atomic) Thread (\(\d{1,10}, ?\d{1,10}, ?\d{1,10}\)) at (.{1,8000})"
BY_THREAD = r"by thread (\([\d,]{1,40}\))(?: in block (\([\d,]{1,40}\)))?"
ADDRESS = r"(?:Address|Access (?:at|to)) (0x[0-9a-fA-F]{1,16}) is ([\w ]{1,80})"
NEAREST = (
    r"and is (?:(?P<distance>[\d,]{1,26}) bytes? (?P<side>after|before)|(?P<inside>inside)) (?:the )?nearest allocation"
    r"(?: at (?P<address>0x[0-9a-fA-F]{1,16}))?(?: of size (?P<size>[\d,]{1,26}) bytes?)?"
)

"""Functions of Python in which the answer to a request is waited for: who is in one has asked for something, and is not
idle. Rows, no logic."""

from __future__ import annotations

from typing import Tuple

REQUEST_CALLS: Tuple[Tuple[str, str, str], ...] = (
    (r"(\w+\.)?(getresponse|_read_status)$", r"(^|/)http/client\.py$", "CPython http.client; requests, urllib3"),
    (r"(\w+\.)?_receive_(response_headers|event)$", r"(^|/)httpcore/_sync/\w+\.py$", "httpcore, httpx"),
    (r"(\w+\.)?_callmethod$", r"(^|/)multiprocess(ing)?/managers\.py$", "CPython multiprocessing.managers.BaseProxy"),
    (r"(\w+\.)?(single_request|_request)$", r"(^|/)xmlrpc/client\.py$", "CPython xmlrpc.client"),
    (r"(\w+\.)?(parse_response|read_response)$", r"(^|/)redis/(client|connection)\.py$", "redis-py"),
)
"""(function, file, source), each searched in a frame of the waiting thread."""

ASKS_BY_NAME = (
    r"(?:\w+\.)*_?(?:ask|request|query|invoke|rpc|generate|infer|round_?trip|call_\w+|collective_rpc|execute_method"
    r"|send_and_(?:recv|receive|wait)\w*|send_recv\w*"
    r"|(?:get|wait|wait_for|recv|receive|read|await)_(?:\w+_)?(?:response|reply|answer)s?)$"
    r"|(?:\w+\.)*\w*(?:Http|HTTP|Rest|REST|Api|API|Rpc|RPC|Client)\w*"
    r"\.(?:get|head|post|put|delete|fetch|call|execute|command|send_command)$"
)
"""What programs call functions of their own that send a request and wait for the answer; matched in full, of a function
that calls into a library to receive."""

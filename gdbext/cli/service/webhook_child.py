"""Posts its standard input to a URL. Run as a program of its own, which is killed when it takes too long.

The first line of the input is the URL (it may hold a token: no command line shows it), the rest is the body. Status 0
when the server took it; else one line on stderr says why not, without the URL. What may pass by itself (nobody listens,
429, 5xx) is tried three times.
"""

import sys
import time
import urllib.error
import urllib.parse
import urllib.request

_TRIES = 3


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An alert goes where it was sent, not where a server points."""

    def redirect_request(self, *_):  # type: ignore[no-untyped-def]
        return None


def post(url: str, body: bytes, seconds: float) -> str:
    """Why the server did not take it; "" when it did. `seconds` for one answer of it."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", "User-Agent": "gdbext"})  # noqa: S310 - the settings take http and https alone
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds) as answer:
            answer.read(1 << 16)
            return ""
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}"
    except urllib.error.URLError as error:
        return str(getattr(error.reason, "strerror", None) or error.reason)
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or type(error).__name__


def main() -> int:
    url = sys.stdin.buffer.readline().decode("utf-8").strip()
    body, seconds = sys.stdin.buffer.read(), float(sys.argv[1])
    for number in range(1, _TRIES + 1):
        why = post(url, body, seconds)
        final = why.startswith(("HTTP 3", "HTTP 4")) and why != "HTTP 429"
        if not why or final or number == _TRIES:
            break
        time.sleep(seconds * number / 20)
    if why:
        host = urllib.parse.urlsplit(url).hostname or ""
        sys.stderr.write(f"{host}: {why}"[:300] + "\n")
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main())

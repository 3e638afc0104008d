"""Numbers of a service for Prometheus, by its own client library: an endpoint, a text file, or both."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Optional

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server, write_to_textfile

from gdbext.cli.service.service_settings import address_of
from gdbext.model.errors import refused_as


class Metrics:
    """Each is written once here; docs/service.md lists them."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        job = ["job"]
        self._ranks = Gauge("gdbext_ranks", "Followed ranks of the job.", job, registry=registry)
        self._stood = Gauge(
            "gdbext_standstill_seconds", "For how long most ranks have made no progress.", job, registry=registry
        )
        self._verdicts = Counter("gdbext_verdicts", "Diagnoses by verdict.", ["job", "cause"], registry=registry)
        self._looks = Counter("gdbext_looks", "Diagnoses.", job, registry=registry)
        self._pause = Gauge(
            "gdbext_longest_pause_seconds", "Longest stop of a rank by a diagnosis.", job, registry=registry
        )
        self._errors = Counter("gdbext_errors", "Errors by place.", ["where"], registry=registry)
        self._alerts = Counter("gdbext_alerts", "Alerts by result.", ["how", "result"], registry=registry)
        self._bundles = Gauge("gdbext_bundle_bytes", "Bytes of all bundles on the disk.", registry=registry)
        self._turned = Gauge("gdbext_alive_timestamp_seconds", "When the service last polled.", registry=registry)
        self._pauses: Dict[str, float] = {}
        self._server: Any = None
        self._address = ""

    def listen(self, address: str) -> None:
        """Serve at `[HOST:]PORT`; "" ends it. Raises `GdbextError`."""
        if address == self._address:
            return
        self.close()
        if address:
            host, port = address_of(address)
            with refused_as(f"cannot serve metrics at {address}"):
                self._server = start_http_server(port, host, self.registry)
        self._address = address

    def write(self, path: str) -> None:
        """For node_exporter's textfile collector: whole or not at all. Raises `GdbextError`."""
        with refused_as(f"cannot write {path}"):
            write_to_textfile(path, self.registry)

    def close(self) -> None:
        if self._server is not None:
            server, _ = self._server
            server.shutdown()
            server.server_close()
        self._server = None

    def turned(self, at: float) -> None:
        self._turned.set(at)

    def polled(self, job: str, ranks: int, still_seconds: float) -> None:
        self._ranks.labels(job).set(ranks)
        self._stood.labels(job).set(still_seconds)

    def looked(self, job: str, cause: str, pause_ms: Optional[float]) -> None:
        self._looks.labels(job).inc()
        self._verdicts.labels(job, cause).inc()
        self._pauses[job] = max(self._pauses.get(job, 0.0), (pause_ms or 0.0) / 1000)
        self._pause.labels(job).set(self._pauses[job])

    def count_failure(self, where: str) -> None:
        self._errors.labels(where).inc()

    def alerted(self, how: str, result: str) -> None:
        self._alerts.labels(how, result).inc()

    def set_bundle_bytes(self, size: int) -> None:
        self._bundles.set(size)

    def forget(self, job: str) -> None:
        """It has ended: its gauges go, its counters stay."""
        for gauge in (self._ranks, self._stood):
            with contextlib.suppress(KeyError):
                gauge.remove(job)

"""Count the requests of one server process for Prometheus."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(slots=True)
class _Latency:
    buckets: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    total: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds
        self.count += 1


class Metrics:
    """Requests by method, route and status; seconds by route; requests in progress."""

    def __init__(self, more: Callable[[], str] = lambda: "") -> None:
        """``more`` adds figures that others keep; it may take its time."""
        self._more = more
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._latency: dict[str, _Latency] = {}
        self._in_progress = 0
        self._started = time.time()

    def begin(self) -> Timer:
        """Note that a request began."""
        self._in_progress += 1
        return Timer(self)

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note that a request was answered."""
        self._in_progress -= 1
        # Any word is a method to HTTP; a label must not grow without bound.
        known = method if method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS") else "other"
        self._requests[known, route, status] += 1
        self._latency.setdefault(route, _Latency()).add(seconds)

    def text(self) -> str:
        """Return everything in the Prometheus text format."""
        lines = ["# TYPE evercontext_http_requests_total counter"]
        lines += [
            f'evercontext_http_requests_total{{method="{method}",route="{route}",'
            f'status="{status}"}} {count}'
            for (method, route, status), count in sorted(self._requests.items())
        ]
        lines.append("# TYPE evercontext_http_request_seconds histogram")
        for route, latency in sorted(self._latency.items()):
            lines += _histogram(route, latency)
        lines += [
            "# TYPE evercontext_http_requests_in_progress gauge",
            f"evercontext_http_requests_in_progress {self._in_progress}",
            "# TYPE evercontext_start_time_seconds gauge",
            f"evercontext_start_time_seconds {self._started:.3f}",
        ]
        return "\n".join(lines) + "\n" + self._more()


class Timer:
    """Measures one request."""

    __slots__ = ("_metrics", "_started")

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._started = time.perf_counter()

    def end(self, method: str, route: str, status: int) -> None:
        """Note how it was answered."""
        self._metrics.add(method, route, status, time.perf_counter() - self._started)


def _histogram(route: str, latency: _Latency) -> list[str]:
    name, seen, lines = "evercontext_http_request_seconds", 0, []
    for bound, count in zip((*map(str, _BOUNDS), "+Inf"), latency.buckets, strict=True):
        seen += count
        lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {seen}')
    lines.append(f'{name}_sum{{route="{route}"}} {latency.total:.6f}')
    lines.append(f'{name}_count{{route="{route}"}} {latency.count}')
    return lines

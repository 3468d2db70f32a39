"""The web console over a long log, in a real browser.

    python benchmarks/console.py [--events 100000] [--json]

Half of the events are one run, the other half are runs of a hundred events each. The browser's own
performance API tells the first paint and how long a key or a wheel took to show; the server's
seconds are CPU seconds of its process, so that a busy machine does not change them much. Needs
chromium and the package `playwright`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evercontext.domain.event import Diff, Final, ModelReply, Step, StepResult, Task
from evercontext.events.log import EventLog

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-proxy-server",
]
PAINTED = """
() => new Promise((tell) => {
  const found = performance.getEntriesByName('first-contentful-paint')[0];
  if (found) { tell(found.startTime); return; }
  new PerformanceObserver((list) => tell(list.getEntries()[0].startTime)).observe({type: 'paint', buffered: true});
})
"""  # noqa: E501
WATCH = """
() => { window.took = []; new PerformanceObserver((list) => { for (const one of list.getEntries())
  if (['keydown', 'click', 'pointerdown'].includes(one.name)) window.took.push(one.duration); })
  .observe({type: 'event', durationThreshold: 16}); }
"""


def fill(directory: Path, root: Path, events: int) -> str:
    """Write a log of so many events; return the trace id of the long run."""
    log = EventLog(directory)
    giant = "00000000-0000-4000-8000-000000000001"
    for number in range(events // 200):
        run(log, f"00000000-0000-4000-8000-{number + 2:012}", f"Task number {number}", root, 100)
    run(log, giant, "A very long task", root, events // 2)
    log.close()
    return giant


def run(log: EventLog, trace: str, text: str, root: Path, events: int) -> None:
    body: Any = Task(text=text, root=str(root), model="m:one", mode="agent", door="run")
    log.emit(body, trace_id=trace)
    for number in range((events - 2) // 4):
        path = f"src/module_{number}.py"
        log.emit(
            ModelReply(
                model="m:one",
                turn=number,
                text="Now this.",
                input_tokens=900,
                output_tokens=40,
                cost_usd=0.001,
            ),
            trace_id=trace,
        )
        given = {"path": path, "content": "x" * 400}
        body = Step(
            tool="write_file", arguments=given, effects=("write",), door="run", mode="agent"
        )
        step = log.emit(body, trace_id=trace)
        log.emit(
            StepResult(tool="write_file", ok=True, text=f"wrote {path} " + "y" * 300),
            trace_id=trace,
            parent=step.id,
        )
        diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"
        body = Diff(path=path, kind="changed", added=1, removed=1, diff=diff)
        log.emit(body, trace_id=trace, parent=step.id)
    log.emit(Final(status="done", text="Done.", exit_code=0, turns=1), trace_id=trace)


def cpu(pid: int) -> float:
    """Seconds of CPU a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """Megabytes it holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure(link: str, url: str, giant: str, pid: int) -> dict[str, Any]:
    """Use the console, and time it."""
    from playwright.async_api import async_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    figures: dict[str, Any] = {"resident_before_mb": round(resident(pid), 1)}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = await (await browser.new_context(viewport={"width": 1280, "height": 800})).new_page()
        before = cpu(pid)
        await page.goto(link)
        await page.locator(".run-row").first.wait_for(timeout=120_000)
        figures["server_reads_the_log_cpu_s"] = round(cpu(pid) - before, 2)
        figures["resident_mb"] = round(resident(pid), 1)
        await load(page, url, "runs", ".run-row", "runs", figures, pid)
        await load(page, url, f"runs/{giant}", ".event-row", "long_run", figures, pid)
        await interact(page, figures)
        await load(page, url, "kpis", "svg .col", "kpis", figures, pid)
        await browser.close()
    return figures


async def load(
    page: Any, url: str, path: str, row: str, name: str, figures: dict[str, Any], pid: int
) -> None:
    """Load a page five times: first paint, all there, the server's part."""
    paints, alls, spent = [], [], []
    for _ in range(5):
        before = cpu(pid)
        await page.goto(f"{url}/console/{path}")
        await page.locator(row).first.wait_for(timeout=60_000)
        alls.append(await page.evaluate("performance.now()"))
        paints.append(await page.evaluate(PAINTED))
        spent.append(cpu(pid) - before)
    figures[f"{name}_first_paint_ms"] = round(statistics.median(paints))
    figures[f"{name}_rows_there_ms"] = round(statistics.median(alls))
    figures[f"{name}_server_cpu_ms"] = round(statistics.median(spent) * 1000)


async def interact(page: Any, figures: dict[str, Any]) -> None:
    """Move through the long run: keys, and a jump to its end."""
    await page.evaluate(WATCH)
    for _ in range(30):
        await page.keyboard.press("j")
        await page.wait_for_timeout(30)
    jumps = []
    for key, wanted in (("End", "Final"), ("Home", "Task")) * 3:
        started = time.perf_counter()
        await page.keyboard.press(key)
        await page.locator(".event-row", has_text=wanted).first.wait_for()
        jumps.append((time.perf_counter() - started) * 1000)
    took = await page.evaluate("window.took")
    figures["rows_in_page"] = await page.locator(".event-row").count()
    figures["key_to_paint_p75_ms"] = (
        round(statistics.quantiles(took, n=4)[2]) if len(took) > 1 else "under 16"
    )
    figures["keys_over_16_ms"] = len(took)
    figures["jump_to_the_end_ms"] = round(statistics.median(jumps))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder) / "project", Path(folder) / "home"
        root.mkdir()
        giant = fill(home / "traces", root, arguments.events)
        place = {"EC_HOME": str(home), "EC_PORT": "0", "EC_APP_ROOT": str(root)}
        command = [sys.executable, "-m", "evercontext", "serve", "--open", "--only", "gateway"]
        with subprocess.Popen(
            command, env={**os.environ, **place}, stderr=subprocess.PIPE, text=True
        ) as server:
            assert server.stderr
            told = ""
            while "Ctrl-C" not in told:
                told += server.stderr.readline()
            link = re.search(r"open +(\S+)", told)
            url = re.search(r"REST +(\S+)", told)
            assert link, told
            assert url, told
            try:
                figures = asyncio.run(measure(link[1], url[1], giant, server.pid))
            finally:
                server.send_signal(signal.SIGTERM)
        figures = {"events": arguments.events, **figures}
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{name:<32}{value}")


if __name__ == "__main__":
    main()

"""Draw docs/images/terminal-*.svg: the command in a real terminal, in both languages.

    python scripts/terminal_pictures.py                    the pictures that the documentation shows
    python scripts/terminal_pictures.py --all DIR          every scene at 60, 100 and 160 columns
    python scripts/terminal_pictures.py --all DIR --only approval --png

tmux is the terminal: what its screen holds, with its colours, becomes a picture. A model on
loopback plays the other side. ``--png`` draws each picture once more with Chromium.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from terminal_scenes import SCENES, Answer, Hold, make_project

HERE = Path(__file__).resolve().parent.parent
IMAGES = HERE / "docs" / "images"
COMMANDS = Path(sys.executable).parent
WIDTHS = (60, 100, 160)
LOCALES = {"en": "C.UTF-8", "ja": "ja_JP.UTF-8"}
PATIENCE = 180
CELL, ROW, MARGIN, SIZE = 8.4, 18, 14, 14
NO_BREAK = "\u00a0"
"""Spaces of another kind would be run together."""
FOREGROUND, BACKGROUND = "#d4d4d4", "#1e1e1e"
PALETTE = [
    *("#3b3b3b", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d4d4d4"),
    *("#7f848e", "#ff7b86", "#b5e890", "#ffd68a", "#82c7ff", "#e29bf5", "#74d7e3", "#ffffff"),
]


@dataclass
class Model:
    """A model on loopback that speaks OpenAI's wire format and follows a script."""

    answers: list[Answer] = field(default_factory=list)
    url: str = ""
    taken: threading.Event = field(default_factory=threading.Event)

    def chunks(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the next answer's parts."""
        answer: Answer = "Nothing." if not body.get("tools") else self.answers.pop(0)
        if isinstance(answer, str):
            for start in range(0, len(answer), 6):
                yield {"content": answer[start : start + 6]}
                if isinstance(answer, Hold):
                    time.sleep(0.02)
            if isinstance(answer, Hold):
                self.taken.wait(PATIENCE)
            return
        for index, call in enumerate(answer):
            function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
            call_id = f"call_{time.monotonic_ns()}_{index}"
            yield {
                "tool_calls": [
                    {"index": index, "id": call_id, "type": "function", "function": function}
                ]
            }


@contextmanager
def model_server() -> Iterator[Model]:
    """Serve until the block ends."""
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            called = False
            for delta in model.chunks(body):
                called = called or "tool_calls" in delta
                choice = {"index": 0, "delta": delta, "finish_reason": None}
                self._send({**base, "choices": [choice]})
            reason = "tool_calls" if called else "stop"
            usage = {"prompt_tokens": 4200, "completion_tokens": 180, "total_tokens": 4380}
            choice = {"index": 0, "delta": {}, "finish_reason": reason}
            self._send({**base, "choices": [choice], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _send(self, chunk: dict[str, Any]) -> None:
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield model
    finally:
        model.taken.set()
        server.shutdown()
        server.server_close()


@dataclass
class Terminal:
    """One window of a tmux server of its own."""

    project: Path
    home: Path
    model: Model
    columns: int
    language: str
    rows: int = 36
    _socket: str = field(default_factory=lambda: f"pictures-{os.getpid()}-{time.monotonic_ns()}")

    def start(self, *arguments: str, program: str = "evercontext", **environment: str) -> None:
        """Start the command in the project."""
        values = {
            "EC_HOME": str(self.home),
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": LOCALES[self.language],
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": self.model.url,
            "EC_MODEL_NAME": "openai:gpt-6.1-terra",
            **environment,
        }
        said = " ".join(f"{name}='{value}'" for name, value in values.items())
        command = " ".join([str(COMMANDS / program), *(f"'{word}'" for word in arguments)])
        size = ["-x", str(self.columns), "-y", str(self.rows)]
        line = f'exec env -i TERM=$TERM {said} sh -c "{command}; sleep 1000"'
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(self.project), line)
        self._tmux("set", "-s", "escape-time", "0")

    def sees(self, *texts: str) -> None:
        """Wait until all of these are on the screen."""
        deadline = time.monotonic() + PATIENCE
        while True:
            shown = "".join(self.screen(colours=False).split())
            missing = [text for text in texts if "".join(text.split()) not in shown]
            if not missing:
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"never saw {missing} in:\n{self.screen(colours=False)}")
            time.sleep(0.1)

    def ready(self) -> None:
        """Wait for the prompt."""
        deadline = time.monotonic() + PATIENCE
        while not {">", "plan>"} & set(self.screen(colours=False).split()):
            if time.monotonic() > deadline:
                raise SystemExit(f"no prompt in:\n{self.screen(colours=False)}")
            time.sleep(0.1)

    def types(self, text: str) -> None:
        """Type text without Enter."""
        self._tmux("send-keys", "-l", text)
        time.sleep(0.3)

    def presses(self, *keys: str) -> None:
        """Press keys by tmux's names for them."""
        self._tmux("send-keys", *keys)

    def says(self, text: str) -> None:
        """Send one message."""
        self.types(text)
        self.presses("Enter")

    def screen(self, *, colours: bool = True) -> str:
        """Return what the terminal shows, with its colours as escape sequences."""
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def settled(self) -> str:
        """Return the screen once it no longer changes."""
        before = ""
        for _ in range(20):
            time.sleep(0.4)
            if (now := self.screen()) == before:
                break
            before = now
        return self.screen()

    def stop(self) -> None:
        """End the terminal and everything in it."""
        self._tmux("kill-server", check=False)

    def _tmux(self, *arguments: str, check: bool = True) -> str:
        command = ["tmux", "-u", "-L", self._socket, *arguments]
        done = subprocess.run(command, check=check, capture_output=True, encoding="utf-8")
        return done.stdout


def svg(screen: str, columns: int, title: str) -> str:
    """Return the picture of a screen."""
    from rich.cells import cell_len
    from rich.color import ColorSystem
    from rich.console import Console
    from rich.text import Text

    lines = screen.rstrip("\n").split("\n")
    console = Console(width=columns + 10, color_system="256", force_terminal=True)
    width, height = columns * CELL + 2 * MARGIN, len(lines) * ROW + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}"'
        f' width="{width:.0f}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="DejaVu Sans Mono,Noto Sans Mono CJK JP,Menlo,Consolas,monospace"'
        f' font-size="{SIZE}" fill="{FOREGROUND}">',
    ]
    # Colours go on from one line to the next.
    for number, line in enumerate(Text.from_ansi("\n".join(lines)).split("\n", allow_blank=True)):
        at, top = 0, MARGIN + number * ROW
        line.end = ""
        for segment in line.render(console):
            for text in _alike(segment.text):
                wide = cell_len(text) * CELL
                left = MARGIN + at * CELL
                at += cell_len(text)
                fill, back, extra = _colours(segment.style, ColorSystem)
                if back:
                    parts.append(
                        f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{ROW}"'
                        f' fill="{back}"/>'
                    )
                if text.strip():
                    parts.append(
                        f'<text x="{left:.1f}" y="{top + 13}" textLength="{wide:.1f}"'
                        ' lengthAdjust="spacingAndGlyphs"'
                        f"{f' fill={chr(34)}{fill}{chr(34)}' if fill else ''}{extra}>"
                        f"{escape(text.replace(' ', NO_BREAK))}</text>"
                    )
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _alike(text: str) -> Iterator[str]:
    """Cut text where the width of its characters changes: each kind is set by itself."""
    from rich.cells import cell_len

    piece = ""
    for letter in text:
        if piece and cell_len(letter) != cell_len(piece[-1]):
            yield piece
            piece = ""
        piece += letter
    if piece:
        yield piece


def _colours(style: Any, systems: Any) -> tuple[str, str, str]:
    if style is None:
        return "", "", ""

    def named(colour: Any) -> str:
        if colour is None or colour.is_default:
            return ""
        if colour.number is not None and colour.number < len(PALETTE):
            return PALETTE[int(colour.number)]
        return str(colour.get_truecolor().hex)

    fill, back = named(style.color), named(style.bgcolor)
    if style.reverse:
        fill, back = back or BACKGROUND, fill or FOREGROUND
    extra = ' font-weight="bold"' if style.bold else ""
    extra += ' fill-opacity="0.55"' if style.dim else ""
    extra += ' font-style="italic"' if style.italic else ""
    extra += ' text-decoration="underline"' if style.underline else ""
    return fill, back, extra


SHOWN: tuple[tuple[str, str, int], ...] = (
    ("first-run", "en", 100),
    ("streaming", "ja", 100),
    ("approval", "en", 100),
    ("red-check", "en", 100),
    ("plan", "ja", 100),
    ("background", "en", 100),
)
"""Pictures of the documentation."""


def picture(scene: str, language: str, columns: int) -> str:
    """Play one scene and return the screen at its end."""
    with tempfile.TemporaryDirectory() as folder, model_server() as model:
        project, home = Path(folder, "parser"), Path(folder, "home")
        project.mkdir()
        home.mkdir()
        make_project(project)
        terminal = Terminal(project, home, model, columns, language)
        try:
            screen = SCENES[scene](terminal)
        finally:
            terminal.stop()
        # A temporary folder says nothing to a reader.
        return screen.replace(str(Path(folder).resolve()), "~/work")


def draw_png(path: Path) -> None:
    """Draw the picture once more as pixels, next to it."""
    head = path.read_text("utf-8").split("viewBox=", 1)[1].split('"')[1].split()
    subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--window-size={head[2]},{head[3]}",
            f"--screenshot={path.with_suffix('.png')}",
            path.as_uri(),
        ],
        check=True,
        capture_output=True,
    )


def main() -> None:
    """Draw what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="DIR", help="every scene, language and width")
    parser.add_argument("--only", choices=[*SCENES])
    parser.add_argument("--language", choices=[*LOCALES])
    parser.add_argument("--columns", type=int)
    parser.add_argument("--png", action="store_true")
    arguments = parser.parse_args()
    chosen = SHOWN
    if arguments.all:
        chosen = tuple(itertools.product(SCENES, LOCALES, WIDTHS))
    folder: Path = arguments.all or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    for scene, language, columns in chosen:
        if arguments.only not in (None, scene) or arguments.language not in (None, language):
            continue
        if arguments.columns not in (None, columns):
            continue
        screen = picture(scene, language, columns)
        name = f"terminal-{scene}" if not arguments.all else f"{scene}-{language}-{columns}"
        path = folder / f"{name}.svg"
        path.write_text(svg(screen, columns, f"{scene}, {columns} columns"), "utf-8")
        if arguments.png:
            draw_png(path.resolve())
        print(path)


if __name__ == "__main__":
    main()

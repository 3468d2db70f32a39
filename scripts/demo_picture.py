"""Draw docs/images/demo.svg and demo-ja.svg: a run that goes wrong, repairs itself and is undone.

    python scripts/demo_picture.py            both languages
    python scripts/demo_picture.py --png      and each picture's last frame as pixels

The command, the tests and the undo are real and run in tmux; a model on loopback plays the other
side. The picture is one SVG whose frames are shown one after the other, without a script.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from terminal_pictures import (
    IMAGES,
    LOCALES,
    NO_BREAK,
    PATIENCE,
    Terminal,
    draw_png,
    model_server,
    svg,
)
from terminal_scenes import Answer, call, make_project

COLUMNS, ROWS = 92, 30
FASTEST = 0.25
"""Seconds between two frames, at least."""
LONGEST = 1.6
"""A frame is not shown longer than this, however long nothing happened."""
LAST = 6.0
AS_ROOT = "running as root|root で動いて"
TASKS = {
    "en": "Support subtraction in the parser",
    "ja": "パーサーを引き算に対応させて",
}
ENDINGS = {
    "en": "`evaluate` subtracts now, and the tests cover it.",
    "ja": "`evaluate` が引き算に対応しました。テストも追加しました。",
}
BEFORE = """    left = 0
    for token in tokenize(source):
        left += int(token) if token != "+" else 0
"""
WRONG = """    left, sign = 0, 1
    for token in tokenize(source):
        if token in "+-":
            sign = -1 if token == "-" else 1
        else:
            left += int(token)
"""
RIGHT = WRONG.replace("int(token)", "sign * int(token)")
TEST = 'assert evaluate("5 - 3") == 2, f"5 - 3 is {evaluate(\'5 - 3\')}, not 2"\n'


def answers(language: str) -> list[Answer]:
    """Return what the model says: a change with a flaw, and its repair."""
    first = 'assert evaluate("1 + 2") == 3'
    return [
        [*call("read_file", path="src/parser.py"), *call("read_file", path="tests.py")],
        [
            *call("edit_file", path="src/parser.py", edits=[{"old": BEFORE, "new": WRONG}]),
            *call("edit_file", path="tests.py", edits=[{"old": first, "new": TEST + first}]),
        ],
        ENDINGS[language],
        call("read_file", path="src/parser.py"),
        call("edit_file", path="src/parser.py", edits=[{"old": WRONG, "new": RIGHT}]),
        ENDINGS[language],
    ]


def record(language: str) -> list[tuple[str, float]]:
    """Play the run and return its screens, each with the seconds it was to be seen."""
    with tempfile.TemporaryDirectory() as folder, model_server() as model:
        project, home = Path(folder, "parser"), Path(folder, "home")
        project.mkdir()
        home.mkdir()
        make_project(project)
        model.answers = answers(language)
        terminal = Terminal(project, home, model, COLUMNS, language, rows=ROWS)
        try:
            frames = _play(terminal, language)
        finally:
            terminal.stop()
        place = str(Path(folder).resolve())
        return [(_tidy(screen.replace(place, "~/work")), seconds) for screen, seconds in frames]


def _tidy(screen: str) -> str:
    """Leave out who drew the picture, and give every frame the same height."""
    lines = [line for line in screen.split("\n") if not re.search(AS_ROOT, line)]
    return "\n".join([*lines[: ROWS - 1], *[" "] * (ROWS - 1 - len(lines)), NO_BREAK])


def _play(terminal: Terminal, language: str) -> list[tuple[str, float]]:
    programs = Path(sys.executable).parent
    path = f"{programs}:/usr/bin:/bin"
    terminal.start("--norc", "--noprofile", program="/bin/bash", PATH=path, PS1="$ ")
    terminal.sees("$")
    frames: list[tuple[str, float]] = []
    test = f"evercontext run '{TASKS[language]}' --test-cmd 'python3 tests.py'"
    for line, ending in ((test, "evercontext undo"), ("evercontext undo", "src/parser.py")):
        terminal.presses("C-l")
        time.sleep(0.3)
        terminal.types(line)
        frames.append((terminal.screen(), 1.0))
        terminal.presses("Enter")
        _watch(terminal, ending, frames)
    return frames


def _watch(terminal: Terminal, ending: str, frames: list[tuple[str, float]]) -> None:
    """Take a frame at each change until the prompt is back below the ending."""
    since = started = time.monotonic()
    while True:
        if time.monotonic() - started > PATIENCE:
            raise SystemExit(f"never saw {ending!r} in:\n{terminal.screen(colours=False)}")
        time.sleep(FASTEST)
        screen, now = terminal.screen(), time.monotonic()
        if screen != frames[-1][0]:
            frames[-1] = (frames[-1][0], min(now - since, LONGEST))
            frames.append((screen, FASTEST))
            since = now
        plain = terminal.screen(colours=False).rstrip()
        if plain.endswith("\n$") and ending in plain:
            frames[-1] = (screen, LAST)
            return


def animate(frames: list[tuple[str, float]], title: str) -> str:
    """Return one picture that shows the frames in turn, for ever."""
    whole = sum(seconds for _, seconds in frames)
    groups, rules, at, head = [], [], 0.0, ""
    for number, (screen, seconds) in enumerate(frames):
        picture = svg(screen, COLUMNS, title)
        head, _, rest = picture.partition("<g ")
        start, end = at / whole * 100, (at + seconds) / whole * 100
        steps = f"0%{{opacity:0}}{start:.2f}%{{opacity:1}}{end:.2f}%{{opacity:0}}"
        if number == len(frames) - 1:
            steps = f"0%{{opacity:0}}{start:.2f}%{{opacity:1}}"
        elif number == 0:
            steps = f"0%{{opacity:1}}{end:.2f}%{{opacity:0}}"
        rules.append(f"@keyframes f{number}{{{steps}}}")
        rules.append(f"#f{number}{{animation:f{number} {whole:.1f}s step-end infinite}}")
        shown = "" if number == len(frames) - 1 else ' opacity="0"'
        groups.append(f'<g id="f{number}"{shown}><g {rest.removesuffix("</svg>" + chr(10))}</g>')
        at += seconds
    # Whoever wants no motion sees the last frame.
    motion = f"<style>@media (prefers-reduced-motion:no-preference){{{''.join(rules)}}}</style>"
    return "\n".join([head.rstrip(), motion, *groups, "</svg>", ""])


def main() -> None:
    """Draw both pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--png", action="store_true")
    arguments = parser.parse_args()
    for language in LOCALES:
        path = IMAGES / ("demo.svg" if language == "en" else f"demo-{language}.svg")
        path.write_text(animate(record(language), TASKS[language]), "utf-8")
        if arguments.png:
            draw_png(path)
        print(path)


if __name__ == "__main__":
    main()

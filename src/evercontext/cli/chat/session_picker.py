"""Choose a past session: arrows move, typing narrows the list, Enter takes one up."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import ColorDepth

from evercontext.cli.messages import translate
from evercontext.cli.sessions import session_row
from evercontext.cli.terminal import clip, one_line
from evercontext.memory.sessions import Session

_MOST_ROWS = 12


class SessionPicker:
    """A list of sessions that the arrow keys walk through."""

    def __init__(self, sessions: Sequence[Session], *, colours: bool = True) -> None:
        self._sessions = list(sessions)
        self._depth = None if colours else ColorDepth.DEPTH_1_BIT
        self.filter = ""
        self.position = 0

    @property
    def matches(self) -> list[Session]:
        """The sessions whose title or id holds every word that was typed."""
        words = self.filter.casefold().split()
        return [
            session
            for session in self._sessions
            if all(word in f"{session.title or ''} {session.id}".casefold() for word in words)
        ]

    def move(self, step: int) -> None:
        """Go up or down; the list has two ends."""
        self.position = max(0, min(self.position + step, len(self.matches) - 1))

    def type(self, text: str) -> None:
        """Narrow the list."""
        self.filter, self.position = self.filter + text, 0

    def erase(self) -> None:
        """Take the last letter back."""
        self.filter, self.position = self.filter[:-1], 0

    @property
    def chosen(self) -> Session | None:
        """The session below the mark."""
        matches = self.matches
        return matches[self.position] if self.position < len(matches) else None

    async def pick(self) -> Session | None:
        """Show the list until one is taken; ``None``: the person left it."""
        app: Application[Session | None] = Application(
            Layout(HSplit([Window(FormattedTextControl(self._lines), dont_extend_height=True)])),
            key_bindings=self._bindings(),
            erase_when_done=True,
            color_depth=self._depth,
        )
        return await app.run_async()

    def _lines(self) -> StyleAndTextTuples:
        width = shutil.get_terminal_size().columns - 3
        head = translate("Which session? Arrows and Enter; type to narrow; Esc for a new one")
        rows: StyleAndTextTuples = [("bold", f"{clip(head, width + 2)}\n")]
        rows.append(("", f"> {clip(one_line(self.filter), width)}\n"))
        matches = self.matches
        first = max(0, min(self.position - _MOST_ROWS // 2, len(matches) - _MOST_ROWS))
        for number, session in enumerate(matches[first : first + _MOST_ROWS], start=first):
            marked = number == self.position
            line = f"{'> ' if marked else '  '}{session_row(session, width)}\n"
            rows.append(("reverse" if marked else "", line))
        if not matches:
            rows.append(("", "  " + translate("no session has these words") + "\n"))
        elif len(matches) > _MOST_ROWS:
            rows.append(("", f"  {self.position + 1}/{len(matches)}\n"))
        return rows

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("up")(lambda event: self.move(-1))
        keys.add("down")(lambda event: self.move(1))
        keys.add("c-p")(lambda event: self.move(-1))
        keys.add("c-n")(lambda event: self.move(1))
        keys.add("pageup")(lambda event: self.move(-_MOST_ROWS))
        keys.add("pagedown")(lambda event: self.move(_MOST_ROWS))
        keys.add("backspace")(lambda event: self.erase())
        keys.add("enter")(lambda event: event.app.exit(result=self.chosen))
        for key in ("escape", "c-c", "c-d"):
            keys.add(key, eager=True)(lambda event: event.app.exit(result=None))

        @keys.add("<any>")
        def _(event: KeyPressEvent) -> None:
            if event.data.isprintable():
                self.type(event.data)

        return keys

"""The line editor: it stays at the bottom while the agent works above it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import sys
import termios
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import Completer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import DynamicStyle, Style

from evercontext.cli.chat.keyboard import Interrupt, T
from evercontext.cli.chat.notification import notification
from evercontext.cli.chat.pasted_text import PastedTexts
from evercontext.cli.messages import translate
from evercontext.cli.terminal import clip, one_line
from evercontext.cli.theme import Theme, theme
from evercontext.events.redaction import Clean
from evercontext.settings import process_environment

_TWICE = 2.0
"""Seconds within which a second Ctrl-C leaves."""
_MENU_LINES = 6
_BETWEEN_DRAWINGS = 0.03
_MOST_WAITING_SHOWN = 3
_STYLE = {
    "bottom-toolbar": "noreverse",
    # The whole message has this class, the growing answer included.
    "prompt": "",
    "arrow": "bold",
    "live": "",
    "status": "",
    "question": "bold",
}


_THEMED: dict[Theme, dict[str, str]] = {
    "dark": {"plan": "ansiyellow bold"},
    "light": {"plan": "#af5f00 bold"},
    "none": {"plan": "bold"},
}


@cache
def _style(name: Theme) -> Style:
    """Return the same object for the same theme: another one is merged and parsed all over."""
    return Style.from_dict(_STYLE | _THEMED[name])


@dataclass(slots=True)
class EditorState:
    """What the editor shows of the conversation, asked for whenever it draws."""

    status: Callable[[], str]
    progress: Callable[[], list[str]]
    planning: Callable[[], bool]
    working: Callable[[], bool]
    width: Callable[[], int]


@dataclass(slots=True)
class _OpenQuestion:
    prompt: str
    keys: str
    answer: asyncio.Future[str | None]
    draft: str


class _Terminal(Vt100Input):
    """The terminal, kept raw from the first message to the last.

    While text is printed above the input, and from one message to the next, prompt_toolkit makes
    the terminal cooked. Enter pressed at that moment arrives as Ctrl-J, a new line in the message,
    and nothing is sent. Only a program that is lent the terminal needs it cooked.
    """

    lent = False

    def cooked_mode(self) -> AbstractContextManager[None]:
        return super().cooked_mode() if self.lent else nullcontext()

    def keep_typed(self) -> None:
        """Keep the keys pressed before the terminal was raw: each new line there was Enter."""
        answer = fcntl.ioctl(self.fileno(), termios.FIONREAD, struct.pack("i", 0))
        if count := struct.unpack("i", answer)[0]:
            typed = os.read(self.fileno(), count).decode("utf-8", "replace")
            self.vt100_parser.feed(typed.replace("\n", "\r"))
            store_typeahead(self, self.flush_keys())


class _RedactedHistory(FileHistory):
    """What was typed, kept without secrets; until the end it can be called back whole."""

    def __init__(self, filename: str, clean: Clean) -> None:
        super().__init__(filename)
        self._clean = clean

    def store_string(self, string: str) -> None:
        super().store_string(self._clean(string))


@dataclass(slots=True)
class Editor:
    """A keyboard with history, completion and a status line."""

    state: EditorState
    completer: Completer
    history: Path
    interrupt: Interrupt
    toggle_mode: Callable[[], None]
    say: Callable[[str], None]
    clean: Clean
    colours: bool = True
    interactive: bool = True
    _session: PromptSession[str] = field(init=False)
    _terminal: _Terminal = field(init=False)
    _queue: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)
    _question: _OpenQuestion | None = None
    echoes: bool = False
    _live: str = ""
    _source: Callable[[], list[str]] | None = None
    _waiting: list[str] = field(default_factory=list)
    _pasted: PastedTexts = field(default_factory=PastedTexts)
    _last_interrupt: float = 0.0
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    def open(self) -> None:
        """Take the terminal; what is printed from now on appears above the editor."""
        self.history.touch(mode=0o600, exist_ok=True)
        self._terminal = _Terminal(sys.stdin)
        self._stack.enter_context(self._terminal.raw_mode())
        self._terminal.keep_typed()
        self._session = PromptSession(
            input=self._terminal,
            message=self._message,
            multiline=True,
            bottom_toolbar=self._status,
            completer=self.completer,
            complete_while_typing=True,
            complete_in_thread=True,
            history=_RedactedHistory(str(self.history), self.clean),
            key_bindings=self._bindings(),
            prompt_continuation="  ",
            reserve_space_for_menu=_MENU_LINES,
            style=DynamicStyle(lambda: _style(theme())),
            color_depth=None if self.colours else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            refresh_interval=0,
        )
        self._session.app.min_redraw_interval = _BETWEEN_DRAWINGS
        self._session.app.timeoutlen = 0.3
        self._session.app.ttimeoutlen = 0.05
        self._stack.enter_context(patch_stdout(raw=True))
        self._tasks = [asyncio.create_task(self._read_on()), asyncio.create_task(self._refresh())]

    async def read(self) -> str | None:
        """The next message that was sent."""
        text = await self._queue.get()
        if self._waiting:
            self._waiting.pop(0)
        return text

    async def answer(self, prompt: str, keys: str = "") -> str | None:
        """Ask; what was being typed is put aside and comes back afterwards."""
        buffer = self._session.default_buffer
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        draft = buffer.text
        # Keys answer at once only if nobody was in the middle of a sentence.
        self._question = _OpenQuestion(prompt, "" if draft else keys, answer, draft)
        buffer.text = ""
        self._session.app.invalidate()
        try:
            return await answer
        finally:
            self._question = None
            buffer.text = draft
            buffer.cursor_position = len(draft)
            self._session.app.invalidate()

    async def lend(self, work: Callable[[], T]) -> T:
        """Let a program use the terminal until ``work``, called in a thread, is over."""
        self._terminal.lent = True
        try:
            return await run_in_terminal(work, in_executor=True)
        finally:
            self._take_back()

    def _take_back(self, *_: object) -> None:
        self._terminal.lent = False

    def show(self, line: str) -> None:
        """Show one line above the input that goes away again."""
        self._live = line
        self._session.app.invalidate()

    def draw(self, source: Callable[[], list[str]] | None) -> None:
        """Draw these lines above the input; the source is asked whenever the screen is drawn."""
        self._source = source
        self._session.app.invalidate()

    def waiting(self) -> int:
        """How many messages wait for their turn."""
        return self._queue.qsize()

    async def close(self) -> None:
        """Give the terminal back."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._stack.close()

    async def _read_on(self) -> None:
        while True:
            try:
                text = await self._session.prompt_async(handle_sigint=False)
            except EOFError:
                self._queue.put_nowait(None)
                return
            text = self._pasted.expand(text)
            if self._question:
                self._settle(text.strip())
            elif text.strip():
                self._waiting.append(text)
                self._queue.put_nowait(text)

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            if self.state.working():
                self._session.app.invalidate()

    def _settle(self, text: str | None) -> None:
        if self._question and not self._question.answer.done():
            self._question.answer.set_result(text)

    def _message(self) -> StyleAndTextTuples:
        if self._session.app.is_done:
            return []
        if self._question:
            return [("class:question", self._question.prompt)]
        fragments: StyleAndTextTuples = []
        width = self.state.width() - 1
        if self._source and (lines := self._source()):
            fragments += to_formatted_text(ANSI("\n".join(lines) + "\n"))
        if self._live:
            live = " · ".join([self._live, *self.state.progress()])
            fragments.append(("class:live", clip(live, width) + "\n"))
        if self.state.working():
            for text in self._waiting[:_MOST_WAITING_SHOWN]:
                line = translate("waits: {text}", text=one_line(text))
                fragments.append(("class:live", clip(f"  {line}", width) + "\n"))
        planning = self.state.planning()
        prompt = ("class:plan", "plan> ") if planning else ("class:arrow", "> ")
        return [*fragments, prompt]

    def _status(self) -> StyleAndTextTuples:
        return [("class:status", clip(self.state.status(), self.state.width() - 1))]

    def _on_ctrl_c(self, event: KeyPressEvent) -> None:
        if self.interrupt():
            self._settle(None)
            return
        if event.current_buffer.text:
            event.current_buffer.reset()
            return
        if time.monotonic() - self._last_interrupt < _TWICE:
            event.app.exit(exception=EOFError)
            return
        self._last_interrupt = time.monotonic()
        self.say(translate("Press Ctrl-C again, or Ctrl-D, to leave."))

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        answering = Condition(lambda: bool(self._question and self._question.keys))
        empty = Condition(lambda: not self._session.default_buffer.text)
        keys.add("enter")(_send)
        keys.add("c-j")(_new_line)
        keys.add("escape", "enter")(_new_line)
        keys.add("c-c")(self._on_ctrl_c)
        keys.add("escape")(self._on_escape)
        idle = Condition(lambda: not self.state.working() and not self._question)
        keys.add("escape", "escape", filter=idle & empty)(self._on_escape_twice)
        keys.add("c-g", filter=idle)(self._on_ctrl_g)
        keys.add(Keys.BracketedPaste)(self._on_paste)
        keys.add("c-d", filter=empty)(self._on_ctrl_d)
        keys.add("s-tab")(self._on_shift_tab)
        paged = Condition(lambda: bool(self._question and " " in self._question.keys))
        keys.add(" ", filter=paged & empty)(self._on_digit)
        for key in "123456":
            keys.add(key, filter=answering & empty)(self._on_digit)
        return keys

    def _on_escape(self, event: KeyPressEvent) -> None:
        if self.interrupt():
            self._settle(None)

    def _on_escape_twice(self, event: KeyPressEvent) -> None:
        self._queue.put_nowait("/rewind")

    def _on_ctrl_g(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.text = self._pasted.expand(buffer.text)
        buffer.tempfile_suffix = ".md"
        self._terminal.lent = True
        buffer.open_in_editor().add_done_callback(self._take_back)

    def _on_paste(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(self._pasted.collapse(event.data))

    def notify(self, text: str) -> None:
        """Tell somebody who looked away that it is their turn."""
        output = self._session.app.output
        output.write_raw(notification(text, process_environment()))
        output.flush()

    def _on_ctrl_d(self, event: KeyPressEvent) -> None:
        self.interrupt()
        self._settle(None)
        event.app.exit(exception=EOFError)

    def _on_shift_tab(self, event: KeyPressEvent) -> None:
        self.toggle_mode()
        event.app.invalidate()

    def _on_digit(self, event: KeyPressEvent) -> None:
        if self._question and event.data in self._question.keys:
            self._settle(event.data)


def _send(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if buffer.complete_state and buffer.complete_state.current_completion:
        buffer.complete_state = None
    elif buffer.document.current_line_before_cursor.endswith("\\"):
        buffer.delete_before_cursor()
        buffer.insert_text("\n")
    else:
        buffer.validate_and_handle()


def _new_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")

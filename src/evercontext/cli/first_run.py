"""The first run: a few questions that lead to a model, where there is none yet."""

from __future__ import annotations

import sys
import termios
import unicodedata
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evercontext.cli.download_progress import DownloadMeter, silent
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.terminal import Screen, columns_of, one_line, pad, wrap
from evercontext.errors import ConfigError, EverContextError, ModelAuthFailed, ModelProblem
from evercontext.settings import KEY_FILE, Settings, masked, process_environment
from evercontext.settings.installation import this_installation

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.layout.processors import Processor

    from evercontext.app.models import Setup

_NAMES = {"openai": "OpenAI", "anthropic": "Anthropic"}
_PAGES = {
    "openai": "https://platform.openai.com/api-keys",
    "anthropic": "https://console.anthropic.com/settings/keys",
}
_YES = {"y", "yes", "はい", "h", "hai", "うん", "ok"}
_LEAVE = {"", "q", "quit", "exit", "no", "やめる", "いいえ"}
_WORDS = {"openai": 1, "anthropic": 2, "claude": 2, "ollama": 3, "small": 4, "smollm2": 4}
Load = Callable[[], Settings]


def can_ask() -> bool:
    """True if a person sits at this terminal."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr.isatty())


async def with_model(load: Load, *, may_ask: bool = True) -> Settings:
    """Return settings with a model that can be used; ask for one where there is none.

    Raises what is missing if nobody can be asked, or if nothing was chosen.
    """
    from evercontext.app.models import missing_model

    settings = load()
    problem = await missing_model(settings)
    if problem is None:
        return settings
    if not (may_ask and can_ask()):
        raise problem
    screen = Screen(sys.stderr, no_color=settings.no_color)
    screen.line(_sentence(translate_composed(problem.message)))
    if not await ask(load):
        raise problem
    settings = load()
    if (still := await missing_model(settings)) is not None:
        raise still
    return settings


async def ask(load: Load) -> bool:
    """Ask until a model is set up or the person leaves; tell whether one is."""
    from evercontext.app.models import setup

    settings = load()
    screen = Screen(sys.stderr, no_color=settings.no_color)
    screens = _SetupScreens(screen, load)
    while True:
        state = await setup.read_setup(load())
        _show_menu(screen, state, settings)
        choice = await screens.choice(translate("Number, or Enter to leave: "), 4, _WORDS)
        if choice is None:
            reply = translate("Nothing was changed. `evercontext setup` asks again.")
            screen.line(screen.wrapped(reply), "dim")
            return False
        steps: list[Callable[[Setup], Awaitable[bool]]] = [
            lambda _: screens.key("openai"),
            lambda _: screens.key("anthropic"),
            screens.ollama,
            screens.small_model,
        ]
        if await steps[choice - 1](state):
            return True


def _show_menu(screen: Screen, state: Setup, settings: Settings) -> None:
    screen.line()
    screen.line(translate("Which model shall EverContext use?"), "bold")
    screen.line()
    rows = [(_NAMES[key.provider], _about_key(key.provider, key.origin)) for key in state.keys]
    rows.append(("Ollama", _about_ollama(state.ollama, settings.ollama_endpoint)))
    small = translate("no key, 93 MB to fetch: a first try, not a programmer")
    rows.append((translate("Small model"), small))
    width = max(columns_of(name) for name, _ in rows)
    for number, (name, about) in enumerate(rows, 1):
        _show_row(screen, f"  {number}  {pad(name, width)}  ", one_line(about))
    screen.line()


def _show_row(screen: Screen, start: str, about: str) -> None:
    """One row of the menu; on a narrow screen the explanation goes below, broken at words."""
    if columns_of(start + about) < screen.width:
        screen.line(f"{start}{screen.paint(about, 'dim')}")
        return
    screen.line(start.rstrip())
    below = " " * 5
    for part in wrap(about, screen.width - len(below)):
        screen.line(f"{below}{screen.paint(part, 'dim')}")


def _about_key(provider: str, origin: str | None) -> str:
    if origin:
        return translate("has a key ({origin})", origin=origin)
    page = _PAGES[provider].removeprefix("https://")
    return translate("paste a key from {page}", page=page)


def _about_ollama(models: tuple[str, ...] | None, endpoint: str) -> str:
    if models is None:
        return translate("is not running at {place}", place=endpoint)
    if not models:
        return translate("runs here, without a chat model")
    if len(models) == 1:
        return translate("runs here: {model}", model=models[0])
    return translate("runs here: {model} and {count} more", model=models[0], count=len(models) - 1)


async def fetch_small_model(settings: Settings, screen: Screen, *, quiet: bool = False) -> None:
    """Bring the small model and, where it is missing, its runtime; then use it."""
    from evercontext.app.models import pull_model, setup

    if not setup.has_runtime():
        meter = silent if quiet else DownloadMeter(screen, translate("its runtime"))
        await setup.install_runtime(settings, meter)
        meter.end()
    meter = silent if quiet else DownloadMeter(screen, translate("the small model"))
    await pull_model("smollm2", settings, meter)
    meter.end()
    setup.use_small_model(settings)


class _SetupScreens:
    def __init__(self, screen: Screen, load: Load) -> None:
        self._screen = screen
        self._load = load

    async def choice(self, prompt: str, most: int, words: dict[str, int]) -> int | None:
        """Return a number from 1 to ``most``, or ``None`` for leaving."""
        while True:
            answer = _plain(await read_answer(prompt))
            if answer in _LEAVE:
                return None
            number = int(answer) if answer.isdecimal() else words.get(answer, 0)
            if 1 <= number <= most:
                return number
            hint = translate("Type a number from 1 to {most}, or just Enter to leave.", most=most)
            self._screen.line(self._screen.wrapped(hint), "yellow")

    async def key(self, provider: str) -> bool:
        """Take a key, check it with its provider and store it."""
        with hidden_typing():
            return await self._take_key(provider)

    async def _take_key(self, provider: str) -> bool:
        from evercontext.app.models import setup
        from evercontext.settings import clean_key

        screen = self._screen
        screen.line()
        name, page = _NAMES[provider], _PAGES[provider]
        text = translate("A key for {name} comes from {page}", name=name, page=page)
        screen.line(screen.wrapped(text), "dim")
        while True:
            pasted = await read_answer(translate("Paste it here, Enter to go back: "), secret=True)
            if not pasted.strip():
                return False
            try:
                key = clean_key(pasted)
                text = translate("Asking {name} about the key {key}", name=name, key=masked(key))
                screen.line(text, "dim")
                await setup.check_key(provider, key, self._load())
            except (ConfigError, ModelAuthFailed) as refusal:
                screen.line(screen.wrapped(_sentence(translate_composed(refusal.message))), "red")
                continue
            except ModelProblem as problem:
                text = problem.message.removeprefix(f"{provider}: ")
                screen.line(screen.wrapped(f"{translate_composed(one_line(text))}."), "yellow")
                if not await self._agrees(translate("Store the key without checking it?")):
                    return False
            return self._store(provider, key)

    def _store(self, provider: str, key: str) -> bool:
        from evercontext.app.models import setup

        settings = self._load()
        try:
            where = setup.use_key(settings, provider, key)
        except EverContextError as problem:
            self._screen.line(translate_composed(one_line(str(problem))), "red")
            return False
        text = translate("Stored in the {where}.", where=where)
        if where.endswith(KEY_FILE):
            own = "Stored in {where}, which only you can read (there is no system keyring here)."
            text = translate(own, where=where)
        self._screen.line(self._screen.wrapped(text), "green")
        return self._used()

    async def ollama(self, state: Setup) -> bool:
        """Let the person choose among the models of the running Ollama."""
        from evercontext.app.models import setup

        screen = self._screen
        if not state.ollama:
            running = state.ollama is not None
            hint = "ollama pull qwen3-coder" if running else "ollama serve"
            lack = "It has no chat model yet." if running else "It is not running."
            elsewhere = translate("In another terminal: {command}", command=hint)
            screen.line(screen.wrapped(f"{translate(lack)} {elsewhere}"), "yellow")
            return False
        if len(state.ollama) == 1:
            choice: int | None = 1
        else:
            screen.line()
            for number, name in enumerate(state.ollama, 1):
                screen.line(f"  {number:>2}  {one_line(name)}")
            screen.line()
            names = {name.lower(): number for number, name in enumerate(state.ollama, 1)}
            choice = await self.choice(
                translate("Number, or Enter to go back: "), len(state.ollama), names
            )
        if choice is None:
            return False
        await setup.use_ollama(self._load(), state.ollama[choice - 1])
        return self._used()

    async def small_model(self, state: Setup) -> bool:
        """Fetch the small model, and its runtime where it is missing, with consent."""
        from evercontext.app.models import setup

        screen = self._screen
        text = (
            "It writes hello-world files and tiny functions, offline. It does not program: take it"
            " for a first try, and another model for work."
        )
        screen.line(screen.wrapped(translate(text)))
        if not setup.has_runtime():
            command = this_installation().hint("embedded")
            needs = translate("It needs a runtime (about 100 MB): {command}", command=command)
            screen.line(screen.wrapped(needs))
            if not await self._agrees(translate("Install it now?")):
                return False
        try:
            await fetch_small_model(self._load(), screen)
        except EverContextError as problem:
            screen.line()
            screen.line(screen.wrapped(_sentence(translate_composed(str(problem)))), "red")
            return False
        return self._used()

    async def _agrees(self, question: str) -> bool:
        return _plain(await read_answer(f"{question} [y/N] ")) in _YES

    def _used(self) -> bool:
        from evercontext.app import canonical_name

        settings = self._load()
        name = canonical_name(settings.model_name or "")
        text = translate("{model} is used from now on.", model=one_line(name))
        self._screen.line(text, "green")
        text = translate("Another one: evercontext model use NAME, or evercontext setup")
        self._screen.line(self._screen.wrapped(text), "dim")
        self._screen.line()
        return True


@contextmanager
def hidden_typing() -> Iterator[None]:
    """Keep the terminal from echoing: a key pasted between two questions would stay in sight.

    What is still unread at the end is dropped: the rest of a paste is no message for a model.
    """
    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except (termios.error, OSError, ValueError):
        yield
        return
    quiet = [*before]
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSAFLUSH, before)
        _forget_keys_read_ahead()


def _forget_keys_read_ahead() -> None:
    """Drop the keys behind an answer that prompt_toolkit keeps for its next question."""
    from prompt_toolkit.input import create_input
    from prompt_toolkit.input.typeahead import clear_typeahead

    clear_typeahead(create_input(sys.stdin))


def _plain(answer: str) -> str:
    """An answer as it is compared: a full-width １ from a Japanese keyboard is a 1."""
    return unicodedata.normalize("NFKC", answer).strip().lower()


def _sentence(text: str) -> str:
    line = one_line(text)
    if line.endswith((".", "!", "?", ")", "。", "）")):
        return line[:1].upper() + line[1:]
    return line[:1].upper() + line[1:] + ("." if line[-1:].isascii() else "。")


async def read_answer(prompt: str, *, secret: bool = False) -> str:
    """Read a line at the terminal; a secret shows only how long it is. Raises at Ctrl-C."""
    if process_environment().get("TERM", "") in ("", "dumb"):
        return await _read_plainly(prompt, secret)
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(
        output=create_output(stdout=sys.stderr),
        input_processors=[_hidden()] if secret else [],
        key_bindings=_bindings(),
    )
    try:
        return await session.prompt_async(prompt)
    except EOFError:
        return ""


async def _read_plainly(prompt: str, secret: bool) -> str:
    import asyncio
    import getpass

    def read() -> str:
        if secret:
            return getpass.getpass(prompt, stream=sys.stderr)
        print(prompt, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline()

    try:
        return await asyncio.to_thread(read)
    except EOFError:
        return ""


def _bindings() -> KeyBindings:
    """What is pasted often ends with a newline, which would look like a second answer.

    Esc answers nothing, as Enter alone does: at every question that means back.
    """
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.keys import Keys

    bindings = KeyBindings()

    @bindings.add(Keys.BracketedPaste)
    def paste(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(" ".join(event.data.split()))

    # At once: otherwise the letter typed next would be taken for a part of Alt-letter.
    @bindings.add(Keys.Escape, eager=True)
    def back(event: KeyPressEvent) -> None:
        event.app.exit(result="")

    return bindings


def _hidden() -> Processor:
    from prompt_toolkit.layout import processors

    class Hidden(processors.Processor):
        """Shows that something was pasted, and how long it is."""

        def apply_transformation(
            self, transformation_input: processors.TransformationInput
        ) -> processors.Transformation:
            text = transformation_input.document.text
            shown = f"{'•' * min(len(text), 8)} ({len(text)} characters)" if text else ""
            return processors.Transformation([("", shown)], source_to_display=lambda _: len(shown))

    return Hidden()

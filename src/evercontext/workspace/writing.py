"""The tools that change: write, edit, delete, move."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from evercontext.domain.tool import Arguments, Caller, Caution, Effect, FileChange, Tool, ToolResult
from evercontext.errors import Changed, EditMismatch, NotFound, TooLarge
from evercontext.files.tree import FileText, WriteMode, Written
from evercontext.process.workers import THINKING, Stop, think
from evercontext.workspace.conflict import show_three_ways
from evercontext.workspace.edits import Applied, Edit, apply_edits, find_placeholder, keep_form
from evercontext.workspace.reads import ReadLedger, count_lines
from evercontext.workspace.schema import boolean, choice, objects, parameters, string
from evercontext.workspace.workspace import Workspace

_PATH = "Path relative to the project root, with / between names."
_ORDINARY = frozenset("\t\n\r\f\ufeff")
_CHANGES = Effect.READ | Effect.WRITE
_MOST_EDITS = 1000


@dataclass(frozen=True, slots=True)
class _Draft:
    """A new content, made from what was read and not written yet."""

    file: FileText
    content: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How far an edit may go: characters of its result, and whether anybody still waits."""

    longest: int | None
    check: Callable[[], None]


_Compose = Callable[[Arguments, FileText, _Bounds], tuple[str, tuple[str, ...]]]


def writing_tools(workspace: Workspace, ledger: ReadLedger) -> list[Tool]:
    """Return the changing tools, under the names of both protocols."""
    edit_file = _edit_tool(
        workspace,
        ledger,
        name="edit_file",
        description=(
            "Replace parts of a file by search and replace. All edits are made, in order, or none. "
            "Each old text must occur exactly once. Read the file first."
        ),
        properties={"edits": _edits_schema()},
        compose=_compose_edits,
    )
    delete_file = _delete_file(workspace)
    move_file = _move_file(workspace)
    return [
        _write_file(workspace, ledger),
        _create_file(workspace, ledger),
        edit_file,
        replace(edit_file, name="replaceInFile", shown_to="native"),
        _edit_whole(workspace, ledger),
        delete_file,
        replace(delete_file, name="deleteFile", shown_to="native"),
        move_file,
        replace(move_file, name="moveFile", shown_to="native"),
    ]


def _write_file(workspace: Workspace, ledger: ReadLedger) -> Tool:
    return _writer(
        workspace,
        ledger,
        name="write_file",
        description="Write a text file; missing directories are made.",
        properties={
            "path": string(_PATH),
            "content": string("The text to write."),
            "mode": choice(
                "create: a new file, fails if it exists; overwrite: replace the whole content; "
                "append: add to the end.",
                [mode.value for mode in WriteMode],
            ),
            "if_match": string(
                "SHA-256 of the content that is to be replaced; refused if the file has another."
            ),
        },
        optional=("if_match",),
        mode_of=lambda arguments: WriteMode(arguments["mode"]),
        shown_to_native=False,
    )


def _create_file(workspace: Workspace, ledger: ReadLedger) -> Tool:
    return _writer(
        workspace,
        ledger,
        name="writeFile",
        description="Create a new text file; missing directories are made. Fails if it exists.",
        properties={
            "path": string(f"{_PATH} No file may be there yet."),
            "content": string("The whole content of the new file."),
        },
        mode_of=lambda arguments: WriteMode.CREATE,
        shown_to_native=True,
    )


def _writer(
    workspace: Workspace,
    ledger: ReadLedger,
    *,
    name: str,
    description: str,
    properties: dict[str, dict[str, object]],
    mode_of: Callable[[Arguments], WriteMode],
    shown_to_native: bool,
    optional: tuple[str, ...] = (),
) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        path, content, mode = arguments["path"], arguments["content"], mode_of(arguments)
        known = arguments.get("if_match")
        written = await workspace.write(path, content, mode, caller, if_match=known)
        if written.created or mode is not WriteMode.APPEND:
            await _know(ledger, caller, written)
        done = "created" if written.created else "wrote"
        controls = await think(len(content), _report_controls, content)
        return _result(f"{done} {written.path}", written, controls)

    async def preview(arguments: Arguments, caller: Caller) -> tuple[FileChange, ...]:
        mode = mode_of(arguments)
        return (
            _change(await workspace.preview(arguments["path"], arguments["content"], mode, caller)),
        )

    return Tool(
        name=name,
        description=description,
        arguments=parameters(
            properties, required=[name for name in properties if name not in optional]
        ),
        effects=_CHANGES,
        run=run,
        preview=preview,
        caution=_caution(workspace),
        shown_to="native" if shown_to_native else "json",
    )


def _edit_whole(workspace: Workspace, ledger: ReadLedger) -> Tool:
    return _edit_tool(
        workspace,
        ledger,
        name="editFile",
        description=(
            "Replace the whole content of an existing file. Read the file first, then give the "
            "complete new content: what is left out is lost."
        ),
        properties={
            "new_content": string(
                "The complete new content of the file, from the first line to the last, including "
                "everything that stays as it is. Read the file before you write this."
            )
        },
        compose=_compose_whole,
        native=True,
    )


def _edit_tool(
    workspace: Workspace,
    ledger: ReadLedger,
    *,
    name: str,
    description: str,
    properties: dict[str, dict[str, object]],
    compose: _Compose,
    native: bool = False,
) -> Tool:
    async def draft(arguments: Arguments, caller: Caller) -> _Draft:
        file = await _existing(workspace, arguments["path"], caller)
        stop = Stop()
        bounds = _Bounds(workspace.longest(caller), stop.check)
        try:
            ledger.check(caller, file.path, file.sha256)
        except Changed as error:
            base = ledger.seen(caller, file.path)
            conflict = partial(_conflict, error, file, base, arguments, compose, bounds)
            raise await THINKING.run(conflict, stop=stop) from None
        content, notes = await THINKING.run(compose, arguments, file, bounds, stop=stop)
        return _Draft(file, content, notes)

    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        made = await draft(arguments, caller)
        # by the name that was given: a link can be read through, and is refused here
        written = await workspace.write(
            arguments["path"],
            made.content,
            WriteMode.OVERWRITE,
            caller,
            if_match=made.file.sha256,
        )
        await _know(ledger, caller, written)
        return _result(f"edited {written.path}", written, made.notes)

    async def preview(arguments: Arguments, caller: Caller) -> tuple[FileChange, ...]:
        made = await draft(arguments, caller)
        path = arguments["path"]
        written = await workspace.preview(path, made.content, WriteMode.OVERWRITE, caller)
        return (_change(written),)

    return Tool(
        name=name,
        description=description,
        arguments=parameters(
            {"path": string(f"{_PATH} The file exists and was read."), **properties},
            required=["path", *properties],
        ),
        effects=_CHANGES,
        run=run,
        preview=preview,
        caution=_caution(workspace),
        shown_to="native" if native else "json",
    )


def _delete_file(workspace: Workspace) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        written = await workspace.delete(arguments["path"], caller)
        return _result(f"deleted {written.path}", written)

    async def preview(arguments: Arguments, caller: Caller) -> tuple[FileChange, ...]:
        path = arguments["path"]
        return (_change(await workspace.preview(path, None, WriteMode.OVERWRITE, caller)),)

    return Tool(
        name="delete_file",
        description="Delete one file. It can be brought back with undo.",
        arguments=parameters({"path": string(_PATH)}, required=["path"]),
        effects=_CHANGES,
        run=run,
        preview=preview,
        caution=_caution(workspace),
        shown_to="json",
    )


def _move_file(workspace: Workspace) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        gone, made = await workspace.move(arguments["path"], arguments["to"], caller)
        text = f"moved {gone.path} to {made.path}"
        data = {"status": "ok", "path": made.path}
        return ToolResult(text, data, changes=(_change(gone), _change(made)))

    async def preview(arguments: Arguments, caller: Caller) -> tuple[FileChange, ...]:
        old, new = arguments["path"], arguments["to"]
        gone = await workspace.preview(old, None, WriteMode.OVERWRITE, caller)
        made = await workspace.preview(new, gone.before or "", WriteMode.CREATE, caller)
        return (_change(gone), _change(made))

    return Tool(
        name="move_file",
        description="Rename a file or move it to another directory; the new name must be free.",
        arguments=parameters(
            {"path": string(_PATH), "to": string("The new path, relative to the project root.")},
            required=["path", "to"],
        ),
        effects=_CHANGES,
        run=run,
        preview=preview,
        caution=_caution(workspace),
        shown_to="json",
    )


def _caution(workspace: Workspace) -> Caution:
    def caution(arguments: Arguments) -> str | None:
        paths = (arguments[key] for key in ("path", "to") if isinstance(arguments.get(key), str))
        return next((reason for path in paths if (reason := workspace.caution(path))), None)

    return caution


def _edits_schema() -> dict[str, object]:
    return objects(
        "The edits, in order.",
        {
            "old": string(
                "The text to replace, copied exactly, with enough lines around it to occur once.",
                least=1,
            ),
            "new": string("The text that takes its place; empty to delete."),
            "replace_all": boolean("Replace every occurrence (default false)."),
        },
        required=["old", "new"],
        most=_MOST_EDITS,
    )


def _conflict(
    error: Changed,
    file: FileText,
    base: str | None,
    arguments: Arguments,
    compose: _Compose,
    bounds: _Bounds,
) -> Changed:
    """Add both sides to the refusal, if what was read is still known: nobody's lines get lost."""
    if base is None or base == file.content:
        return error
    try:
        wanted, _ = compose(arguments, replace(file, content=base), bounds)
    except (EditMismatch, TooLarge):
        return error
    return Changed(
        error.message, fix=f"{error.fix}.\n{show_three_ways(base, file.content, wanted)}"
    )


def _compose_edits(
    arguments: Arguments, file: FileText, bounds: _Bounds
) -> tuple[str, tuple[str, ...]]:
    edits = [
        Edit(edit["old"], edit["new"], edit.get("replace_all", False))
        for edit in arguments["edits"]
    ]
    content, applied = apply_edits(file.content, edits, longest=bounds.longest, check=bounds.check)
    notes = tuple(_tell(number, done) for number, done in enumerate(applied, 1))
    return content, (*notes, *_report_controls(content))


def _compose_whole(
    arguments: Arguments, file: FileText, bounds: _Bounds
) -> tuple[str, tuple[str, ...]]:
    content: str = arguments["new_content"]
    placeholder = find_placeholder(file.content, content)
    if placeholder:
        raise EditMismatch(
            f"the new content holds a placeholder: {placeholder[:80]!r}",
            fix="Give the complete content, every line of it",
        )
    content, kept = keep_form(file.content, content)
    return content, (*(f"kept its {form}" for form in kept), *_report_controls(content))


def _tell(number: int, done: Applied) -> str:
    places = f" ({done.places} places)" if done.places > 1 else ""
    how = "" if done.rung == "exact" else f", matched apart from {done.rung}"
    return f"edit {number} at line {done.line}{places}{how}"


async def _existing(workspace: Workspace, path: str, caller: Caller) -> FileText:
    try:
        return await workspace.read(path, caller)
    except NotFound as error:
        raise NotFound(error.message, fix="Create a new file with the write tool") from None


async def _know(ledger: ReadLedger, caller: Caller, written: Written) -> None:
    """Who wrote a whole content knows it."""
    if written.sha256 and (content := written.after) is not None:
        lines = await think(len(content), count_lines, content)
        ledger.note(caller, written.path, written.sha256, content, lines)


def _result(text: str, written: Written, notes: tuple[str, ...] = ()) -> ToolResult:
    said = "; ".join([text, *notes])
    return ToolResult(said, {"status": "ok", "path": written.path}, changes=(_change(written),))


def _change(written: Written) -> FileChange:
    return FileChange(written.path, written.before, written.after)


def _report_controls(content: str) -> tuple[str, ...]:
    """Control characters are kept, and said: they may be meant, or the trace of a broken escape."""
    if content.isascii() and content.isprintable():
        return ()
    odd = {c for c in set(content) - _ORDINARY if unicodedata.category(c) == "Cc"}
    if not odd:
        return ()
    return ("contains control characters " + " ".join(sorted(f"U+{ord(c):04X}" for c in odd)),)

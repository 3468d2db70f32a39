"""Define the tools that write: write, edit, delete, move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from evercontext.domain.tool import (
    Arguments,
    Caller,
    Caution,
    Door,
    Effect,
    FileChange,
    Tool,
    ToolResult,
)
from evercontext.errors import Changed, EverContextError, NotFound
from evercontext.files.file_tree import FileText, WriteMode, Written
from evercontext.process.worker_threads import THINKING, Stop, think
from evercontext.workspace.parameter_schema import boolean, choice, objects, parameters, string
from evercontext.workspace.proposed_changes import (
    Bounds,
    Compose,
    Draft,
    compose_edits,
    compose_whole,
    conflict_of,
    draft_of,
    draft_unread,
    report_controls,
)
from evercontext.workspace.read_ledger import ReadLedger
from evercontext.workspace.search_and_replace import Applied
from evercontext.workspace.workspace import Workspace

_PATH = "Path relative to the project root, with / between names."
_CHANGES = Effect.READ | Effect.WRITE
_MOST_EDITS = 1000


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
        compose=compose_edits,
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
            "path": string(_PATH, least=1),
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
            "path": string(f"{_PATH} No file may be there yet.", least=1),
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
        if mode is WriteMode.OVERWRITE and known is None:
            await _check_overwrite(workspace, ledger, path, caller)
        written = await workspace.write(path, content, mode, caller, if_match=known)
        if mode is WriteMode.APPEND and written.before is not None:
            ledger.note_appended(caller, written)
        else:
            await _know(ledger, caller, written)
        done = "created" if written.created else "wrote"
        controls = await think(len(content), report_controls, content)
        return _result(f"{done} {written.path}", written, controls)

    async def preview(arguments: Arguments, caller: Caller) -> tuple[FileChange, ...]:
        mode = mode_of(arguments)
        if mode is WriteMode.OVERWRITE and arguments.get("if_match") is None:
            await _check_overwrite(workspace, ledger, arguments["path"], caller)
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
        compose=compose_whole,
        replaces_all=True,
    )


def _edit_tool(
    workspace: Workspace,
    ledger: ReadLedger,
    *,
    name: str,
    description: str,
    properties: dict[str, dict[str, object]],
    compose: Compose,
    replaces_all: bool = False,
) -> Tool:
    async def draft(arguments: Arguments, caller: Caller) -> Draft:
        file = await _existing(workspace, arguments["path"], caller)
        stop = Stop()
        bounds = Bounds(workspace.longest(caller), stop.check)
        try:
            ledger.check_read(caller, file)
            if replaces_all:
                ledger.check_whole(caller, file, instead="replaceInFile")
        except Changed as error:
            if not replaces_all and ledger.is_unread(caller, file.path):
                unread = partial(draft_unread, error, arguments, file, compose, bounds)
                return await THINKING.run(unread, stop=stop)
            base = ledger.content(caller, file.path)
            conflict = partial(conflict_of, error, file, base, arguments, compose, bounds)
            raise await THINKING.run(conflict, stop=stop) from None
        seen = ledger.seen(caller, file)
        return await THINKING.run(draft_of, arguments, file, seen, compose, bounds, stop=stop)

    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        edited = await draft(arguments, caller)
        # by the name that was given: a link can be read through, and is refused here
        written = await workspace.write(
            arguments["path"],
            edited.content,
            WriteMode.OVERWRITE,
            caller,
            if_match=edited.file.sha256,
        )
        await _know(ledger, caller, written, edited.applied)
        return _result(f"edited {written.path}", written, edited.notes)

    async def preview(arguments: Arguments, caller: Caller) -> tuple[FileChange, ...]:
        edited = await draft(arguments, caller)
        path = arguments["path"]
        written = await workspace.preview(path, edited.content, WriteMode.OVERWRITE, caller)
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
        shown_to="native" if replaces_all else "json",
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
        arguments=parameters({"path": string(_PATH, least=1)}, required=["path"]),
        effects=_CHANGES,
        run=run,
        preview=preview,
        caution=_caution(workspace),
        shown_to="json",
    )


def _move_file(workspace: Workspace) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        gone, created = await workspace.move(arguments["path"], arguments["to"], caller)
        text = f"moved {gone.path} to {created.path}"
        data = {"status": "ok", "path": created.path}
        return ToolResult(text, data, changes=(_change(gone), _change(created)))

    async def preview(arguments: Arguments, caller: Caller) -> tuple[FileChange, ...]:
        old, new = arguments["path"], arguments["to"]
        gone = await workspace.preview(old, None, WriteMode.OVERWRITE, caller)
        created = await workspace.preview(new, gone.before or "", WriteMode.CREATE, caller)
        return (_change(gone), _change(created))

    return Tool(
        name="move_file",
        description="Rename a file or move it to another directory; the new name must be free.",
        arguments=parameters(
            {
                "path": string(_PATH, least=1),
                "to": string("The new path, relative to the project root."),
            },
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


async def _existing(workspace: Workspace, path: str, caller: Caller) -> FileText:
    try:
        return await workspace.read(path, caller)
    except NotFound as error:
        raise NotFound(error.message, fix="Create a new file with the write tool") from None


async def _check_overwrite(
    workspace: Workspace, ledger: ReadLedger, path: str, caller: Caller
) -> None:
    """Refuse to replace a file of which the model sees only a part; one it never read it may."""
    if caller.door is Door.REST or not ledger.has_read(caller):
        return
    try:
        file = await workspace.read(path, caller)
    except EverContextError:
        return  # Writing says what is wrong with it.
    ledger.check_overwrite(caller, file, instead="edit_file")


async def _know(
    ledger: ReadLedger,
    caller: Caller,
    written: Written,
    applied: tuple[Applied, ...] | None = None,
) -> None:
    """Who wrote a content knows it: all of it, or what was seen before and the new texts."""
    path, sha256, content = written.path, written.sha256, written.after
    if not sha256 or content is None:
        return
    if applied is not None:
        await ledger.note_edited(caller, path, sha256, content, applied)
    else:
        ledger.note_written(caller, path, sha256, content)


def _result(text: str, written: Written, notes: tuple[str, ...] = ()) -> ToolResult:
    summary = "; ".join([text, *notes])
    return ToolResult(summary, {"status": "ok", "path": written.path}, changes=(_change(written),))


def _change(written: Written) -> FileChange:
    return FileChange(written.path, written.before, written.after)

"""The tools that look: list, read, search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evercontext.domain.tool import Arguments, Caller, Door, Effect, Tool, ToolResult
from evercontext.errors import InvalidArguments
from evercontext.files.listing import MAX_ITEMS, Entry, Listing
from evercontext.files.tree import FileText
from evercontext.process.workers import think
from evercontext.workspace.reads import ReadLedger, count_lines
from evercontext.workspace.schema import boolean, integer, parameters, string, strings
from evercontext.workspace.workspace import Workspace

LONGEST_READ = 60_000
"""Characters of a file that a model is shown at once; it can read on."""

_PATH = "Path relative to the project root, with / between names."


def reading_tools(workspace: Workspace, ledger: ReadLedger) -> list[Tool]:
    """Return the reading tools, under the names of both protocols."""
    list_files = _list_files(workspace)
    read_file = _read_file(workspace, ledger)
    search_files = _search_files(workspace)
    return [
        list_files,
        _list(workspace),
        read_file,
        replace(read_file, name="readFile", shown_to="native"),
        search_files,
        replace(search_files, name="searchInDirectory", shown_to="native"),
    ]


def _list_files(workspace: Workspace) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        found = await workspace.list(
            arguments["path"],
            caller,
            extensions=arguments.get("extensions"),
            max_items=arguments.get("max_items"),
            recursive=arguments.get("recursive", False),
        )
        data: dict[str, Any] = {"files": [_shape(entry) for entry in found.entries]}
        if found.truncated:
            data["truncated"] = True
        return ToolResult(_lines(found), data)

    return Tool(
        name="list_files",
        description="List a directory: names, which of them are directories, and sizes.",
        arguments=parameters(
            {
                "path": string(f'{_PATH} "." is the root.'),
                "extensions": strings("Only files of these kinds, for example [\".py\"]."),
                "max_items": integer(f"At most so many entries (default {MAX_ITEMS}).", minimum=1),
                "recursive": boolean("Also list what is below the directories."),
            },
            required=["path"],
        ),
        effects=Effect.READ,
        run=run,
        shown_to="json",
    )  # fmt: skip


def _list(workspace: Workspace) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        recursive = arguments.get("recursive", False)
        found = await workspace.list(arguments["path"], caller, recursive=recursive)
        return ToolResult(_lines(found), [_name(entry) for entry in found.entries])

    return Tool(
        name="list",
        description="List the names in a directory; directories end with a slash.",
        arguments=parameters(
            {
                "path": string(f'{_PATH} "." is the root.'),
                "recursive": boolean("Also list everything below (default false)."),
            },
            required=["path"],
        ),
        effects=Effect.READ,
        run=run,
        shown_to="native",
    )


def _read_file(workspace: Workspace, ledger: ReadLedger) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        file = await workspace.read(arguments["path"], caller)
        content, size = file.content, len(file.content)
        first = arguments.get("start_line", 1)
        total = await think(size, count_lines, content)
        if first > max(total, 1):
            raise InvalidArguments(f"start_line: the file has only {total} lines")
        asked_end, fits = arguments.get("end_line"), _fits(caller)
        text, last = await think(size, _excerpt, file, total, first, asked_end, fits)
        ledger.note(caller, file.path, file.sha256, content, total, (first, last or total))
        partial = (first, last) != (1, total) and total > 0
        asked = "start_line" in arguments or "end_line" in arguments
        data = {"content": text if asked else content}
        if caller.door is Door.REST:
            # A program takes the content from the data; its trace need not hold every file.
            return ToolResult(f"{file.path}: {total} lines, {file.size} bytes", data)
        note = f"[lines {first}-{last} of {total}; read on with start_line={last + 1}]\n"
        return ToolResult(note + text if partial and last < total else text, data)

    return Tool(
        name="read_file",
        description=(
            "Read a UTF-8 text file. A long one is shown in part: read on with start_line. "
            "A file must have been read whole before it can be edited."
        ),
        arguments=parameters(
            {
                "path": string(_PATH),
                "start_line": integer(
                    "First line to read, from 1 (default: the first).", minimum=1
                ),
                "end_line": integer("Last line to read (default: the last).", minimum=1),
            },
            required=["path"],
        ),
        effects=Effect.READ,
        run=run,
        longest=LONGEST_READ + 200,
        shown_to="json",
    )


def _search_files(workspace: Workspace) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        found = await workspace.search(arguments["directory"], arguments["keyword"], caller)
        more = ["… and more: search in a smaller directory"] if found.truncated else []
        text = "\n".join([*found.paths, *more]) or "no file contains it"
        return ToolResult(text, list(found.paths), hits=len(found.paths))

    return Tool(
        name="search_files",
        description="Find the files below a directory that contain a text, literally.",
        arguments=parameters(
            {
                "directory": string('Directory to search, recursively; "." is the root.'),
                "keyword": string("The text to look for; upper and lower case differ.", least=1),
            },
            required=["directory", "keyword"],
        ),
        effects=Effect.READ,
        run=run,
        shown_to="json",
    )


def _fits(caller: Caller) -> Callable[[int], bool]:
    """A program gets the whole file as data; a model only what its context can bear."""
    if caller.door is Door.REST:
        return lambda size: True
    return lambda size: size <= LONGEST_READ


def _excerpt(
    file: FileText, total: int, first: int, last: int | None, fits: Callable[[int], bool]
) -> tuple[str, int]:
    """Return the wanted lines as far as they may be shown, and the number of the last one."""
    if first == 1 and last is None and fits(len(file.content)):
        return file.content, total
    lines = file.content.splitlines(keepends=True)
    shown: list[str] = []
    size = 0
    for line in lines[first - 1 : last]:
        size += len(line)
        if shown and not fits(size):
            break
        shown.append(line)
    return "".join(shown), first - 1 + len(shown)


def _shape(entry: Entry) -> dict[str, Any]:
    shape: dict[str, Any] = {"name": entry.name, "is_dir": entry.is_dir}
    return shape if entry.size is None else {**shape, "size": entry.size}


def _name(entry: Entry) -> str:
    return entry.name + "/" if entry.is_dir else entry.name


def _lines(found: Listing) -> str:
    lines = [_name(entry) for entry in found.entries]
    if found.truncated:
        lines.append("… and more")
    return "\n".join(lines) or "empty"

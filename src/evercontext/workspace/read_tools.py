"""Define the tools that read: list, read, search."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from evercontext.domain.tool import Arguments, Caller, Door, Effect, Tool, ToolResult
from evercontext.errors import InvalidArguments
from evercontext.files.directory_listing import MAX_ITEMS, DirectoryEntry, Listing
from evercontext.process.worker_threads import think
from evercontext.workspace.parameter_schema import boolean, integer, parameters, string, strings
from evercontext.workspace.read_ledger import ReadLedger
from evercontext.workspace.workspace import LONGEST_SEARCH, Workspace

LONGEST_READ = 60_000
"""Characters of a file that a model is shown at once; it can read on."""

_PAGE_ARGUMENTS = {"start_line", "end_line", "offset"}
"""Arguments that ask for a part of a file."""
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
        listing = await workspace.list(
            arguments["path"],
            caller,
            extensions=arguments.get("extensions"),
            max_items=arguments.get("max_items"),
            recursive=arguments.get("recursive", False),
        )
        data: dict[str, Any] = {"files": [_shape(entry) for entry in listing.entries]}
        if listing.truncated:
            data["truncated"] = True
        return ToolResult(_lines(listing), data)

    return Tool(
        name="list_files",
        description="List a directory: names, which of them are directories, and sizes.",
        arguments=parameters(
            {
                "path": string(f'{_PATH} "." is the root.', least=1),
                "extensions": strings('Only files of these kinds, for example [".py"].'),
                "max_items": integer(f"At most so many entries (default {MAX_ITEMS}).", minimum=1),
                "recursive": boolean("Also list what is below the directories."),
            },
            required=["path"],
        ),
        effects=Effect.READ,
        run=run,
        shown_to="json",
        timeout=LONGEST_SEARCH,
    )


def _list(workspace: Workspace) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        recursive = arguments.get("recursive", False)
        listing = await workspace.list(arguments["path"], caller, recursive=recursive)
        return ToolResult(_lines(listing), [_name(entry) for entry in listing.entries])

    return Tool(
        name="list",
        description="List the names in a directory; directories end with a slash.",
        arguments=parameters(
            {
                "path": string(f'{_PATH} "." is the root.', least=1),
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
        page = await think(len(file.content), _page, file.content, arguments, caller)
        text = file.content[page.start : page.end]
        ledger.note_read(caller, file, page.start, page.end, page.note + text, len(page.note))
        data = {"content": text if _PAGE_ARGUMENTS & arguments.keys() else file.content}
        if caller.door is Door.REST:
            # A program takes the content from the data; its trace need not hold every file.
            return ToolResult(f"{file.path}: {page.total} lines, {file.size} bytes", data)
        return ToolResult(page.note + text, data)

    return Tool(
        name="read_file",
        description=(
            "Read a UTF-8 text file. A long one comes in pages; each says how to read on. "
            "What you replace must have been read: a part, or the whole file."
        ),
        arguments=parameters(
            {
                "path": string(_PATH, least=1),
                "start_line": integer(
                    "First line to read, from 1 (default: the first).", minimum=1
                ),
                "end_line": integer("Last line to read (default: the last).", minimum=1),
                "offset": integer(
                    "Characters to skip in start_line, for a line longer than a page.", minimum=0
                ),
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
        matches = await workspace.search(arguments["directory"], arguments["keyword"], caller)
        more = ["… and more: search in a smaller directory"] if matches.truncated else []
        text = "\n".join([*matches.paths, *more]) or "no file contains it"
        data: Any = list(matches.paths)
        if matches.truncated:
            data = {"result": data, "truncated": True}
        return ToolResult(text, data, hits=len(matches.paths))

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
        timeout=LONGEST_SEARCH,
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """What is shown of a file: characters, and a line about the rest."""

    start: int
    end: int
    total: int
    """Lines of the file."""
    note: str = ""


def _page(content: str, arguments: Arguments, caller: Caller) -> _Page:
    """Return the wanted lines as far as they may be shown at once."""
    if caller.door is Door.REST and not _PAGE_ARGUMENTS & arguments.keys():
        return _Page(0, len(content), len(content.splitlines()))
    lines = content.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    total, first = len(lines), arguments.get("start_line", 1)
    if first > max(total, 1):
        raise InvalidArguments(f"start_line: the file has only {total} lines")
    if arguments.get("end_line", first) < first:
        raise InvalidArguments(f"end_line: {arguments['end_line']} is before start_line, {first}")
    start = starts[first - 1] + arguments.get("offset", 0)
    if start > starts[min(first, total)]:
        size = len(lines[first - 1]) if lines else 0
        raise InvalidArguments(f"offset: line {first} has only {size} characters")
    limit = max(start, starts[min(arguments.get("end_line", total), total)])
    end = _end_of_page(content, start, limit, caller)
    if end < limit and (line_end := starts[bisect_right(starts, end) - 1]) > start:
        end = line_end
    return _Page(start, end, total, _read_on(starts, first, start, end))


def _end_of_page(content: str, start: int, end: int, caller: Caller) -> int:
    """A program gets the whole file as data; a model only what its context can bear."""
    if caller.door is Door.REST:
        return end
    end = min(end, start + LONGEST_READ)
    share = caller.view.share if caller.view else lambda text: 0.0
    while end - start > 1 and (times := share(content[start:end])) > 1:
        end = start + max(1, int((end - start) / times * 0.95))
    return end


def _read_on(starts: list[int], first: int, start: int, end: int) -> str:
    """The line above a page that is not the last: what it holds, and how to get the next."""
    total = len(starts) - 1
    if end >= starts[-1]:
        return ""
    line = bisect_right(starts, end)
    skip = end - starts[line - 1]
    last = line if skip else line - 1
    here = f"lines {first}-{max(first, last)} of {total}"
    if skip:
        size = starts[line] - starts[line - 1]
        return (
            f"[{here}, to character {skip} of {size} in line {line};"
            f" read on with start_line={line}, offset={skip}]\n"
        )
    return f"[{here}; read on with start_line={line}]\n"


def _shape(entry: DirectoryEntry) -> dict[str, Any]:
    shape: dict[str, Any] = {"name": entry.name, "is_dir": entry.is_dir}
    return shape if entry.size is None else {**shape, "size": entry.size}


def _name(entry: DirectoryEntry) -> str:
    return entry.name + "/" if entry.is_dir else entry.name


def _lines(listing: Listing) -> str:
    lines = [_name(entry) for entry in listing.entries]
    if listing.truncated:
        lines.append("… and more")
    return "\n".join(lines) or "empty"

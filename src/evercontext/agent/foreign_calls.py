"""Carry out calls that a model makes in the words of another agent's tools.

Models were trained with the tools of Claude Code, Codex, Gemini CLI and Cline, and fall back
on their names and arguments. What means exactly one of our tools becomes a call of it, with all
its checks; everything else stays as it is and is answered with an error.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evercontext.agent.patch_envelope import InvalidPatch, PatchedFile, read_patch
from evercontext.domain.message import ToolCall
from evercontext.domain.search_replace_blocks import read_blocks
from evercontext.domain.tool import Effect
from evercontext.errors import UnknownTool
from evercontext.tools.toolbox import Toolbox

PATCH = "apply_patch"
_PATHS = ("file_path", "filePath", "filepath", "filename", "absolute_path", "target_file", "file")
_OLD = ("old", "old_string", "oldString", "old_str", "search")
_NEW = ("new", "new_string", "newString", "new_str", "replace", "replacement")
_CONTENT = ("content", "contents", "file_text", "text", "code_edit")
_PATCHES = ("input", "patch", "patchText", "patch_text", "diff", "command")
_COMMAND = ("command", "cmd", "script")
_READ = {"read", "view", "cat", "open_file", "view_file", "read_file", "readfile"}
_WRITE = {"write", "write_to_file", "create_file", "save_file", "write_file"}
_EDIT = {
    "edit",
    "replace",
    "str_replace",
    "replace_in_file",
    "edit_file",
    "multiedit",
    "multi_edit",
}
_RUN = {"bash", "shell", "execute_command", "run_shell_command", "exec", "terminal", "local_shell"}
_EDITORS = {"str_replace_editor", "str_replace_based_edit_tool"}


@dataclass(frozen=True, slots=True)
class RestOfPatch(ToolCall):
    """A part of a patch after its first: not made once a part before it has failed."""


@dataclass(frozen=True, slots=True)
class UnreadablePatch(ToolCall):
    """A patch that cannot be carried out; ``malformed`` begins with a line that says why."""


def in_our_words(calls: Sequence[ToolCall], toolbox: Toolbox) -> tuple[ToolCall, ...]:
    """Return the calls as calls of our tools, where that is beyond doubt."""
    return tuple(ours for call in calls for ours in _translated(call, toolbox))


def _translated(call: ToolCall, toolbox: Toolbox) -> Sequence[ToolCall]:
    name = call.name.removeprefix("functions.").rpartition(".")[2].lower()
    if name == PATCH or _is_patched_shell(call, name):
        return _patch(call, toolbox)
    if call.malformed is not None:
        return [_completed(call, toolbox)]
    known = _has(toolbox, call.name)
    if known:
        return [_with_our_arguments(call, toolbox)]
    arguments = dict(call.arguments)
    if name in _EDITORS:
        name = {"view": "read", "create": "write", "str_replace": "edit"}.get(
            str(arguments.pop("command", "")), name
        )
    if name in _RUN and _has(toolbox, "run_command"):
        return [replace(call, name="run_command", arguments=_command(arguments))]
    for names, ours in ((_READ, "read_file"), (_WRITE, "write_file"), (_EDIT, "edit_file")):
        if name in names and _has(toolbox, ours):
            return [_with_our_arguments(replace(call, name=ours, arguments=arguments), toolbox)]
    return [call]


def _has(toolbox: Toolbox, name: str) -> bool:
    try:
        toolbox.find(name)
    except UnknownTool:
        return False
    return True


def _with_our_arguments(call: ToolCall, toolbox: Toolbox) -> ToolCall:
    """Rename arguments that have another name elsewhere, and only if ours are missing."""
    schema = toolbox.find(call.name).arguments
    properties, arguments = schema.get("properties", {}), dict(call.arguments)
    if "path" in properties and "path" not in arguments:
        _rename(arguments, "path", _PATHS)
    if "content" in properties and "content" not in arguments:
        _rename(arguments, "content", _CONTENT)
    if "edits" in properties:
        _settle_edits(arguments)
    if isinstance(arguments.get("command"), list) and "command" in properties:
        arguments |= _command({"command": arguments["command"]})
    if "mode" in schema.get("required", ()) and "mode" not in arguments and "content" in arguments:
        # What every other agent's tool of this kind does; a file that was not read is refused.
        arguments["mode"] = "overwrite"
    return call if arguments == call.arguments else replace(call, arguments=arguments)


def _rename(arguments: dict[str, Any], ours: str, others: Iterable[str]) -> None:
    there = [name for name in others if name in arguments]
    if len(there) == 1:
        arguments[ours] = arguments.pop(there[0])


def _settle_edits(arguments: dict[str, Any]) -> None:
    if isinstance(diff := arguments.get("diff"), str) and (blocks := search_replace(diff)):
        del arguments["diff"]
        arguments["edits"] = blocks
    if "edits" not in arguments:
        _rename(arguments, "old", _OLD[1:])
        _rename(arguments, "new", _NEW[1:])
        if "old" in arguments and "new" in arguments:
            edit = {"old": arguments.pop("old"), "new": arguments.pop("new")}
            _rename(arguments, "replace_all", ("replaceAll",))
            if "replace_all" in arguments:
                edit["replace_all"] = arguments.pop("replace_all")
            arguments["edits"] = [edit]
        return
    if isinstance(arguments["edits"], list):
        arguments["edits"] = [_one_edit(edit) for edit in arguments["edits"]]


def _one_edit(edit: Any) -> Any:
    if not isinstance(edit, dict):
        return edit
    settled = dict(edit)
    if "old" not in settled:
        _rename(settled, "old", _OLD[1:])
    if "new" not in settled:
        _rename(settled, "new", _NEW[1:])
    return settled


def search_replace(text: str) -> list[dict[str, str]]:
    """Return the SEARCH/REPLACE blocks of a text as edits; none if one of them is broken."""
    return [
        {"old": "\n".join(block.old) + ("" if block.new else "\n"), "new": "\n".join(block.new)}
        for block in read_blocks(text.split("\n"))
    ]


def _command(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a shell's arguments as ours; a list is one command, not several."""
    _rename(arguments, "command", _COMMAND[1:])
    command = arguments.get("command")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        shell = len(command) == 3 and command[0].rpartition("/")[2] in ("bash", "sh", "zsh")
        plain = shell and command[1] in ("-c", "-lc")
        command = command[2] if plain else shlex.join(command)
    return {"command": command}


def _is_patched_shell(call: ToolCall, name: str) -> bool:
    """True for ``shell ["apply_patch", "*** Begin Patch …"]``, as Codex models write it."""
    command = call.arguments.get("command")
    return name in _RUN and isinstance(command, list) and command[:1] == [PATCH]


def _patch(call: ToolCall, toolbox: Toolbox) -> Sequence[ToolCall]:
    if _has(toolbox, PATCH) or not (_has(toolbox, "edit_file") and _has(toolbox, "write_file")):
        return [call]
    text = _decoded(call.malformed) if call.malformed else ""
    text = text or next((t for t in _texts(call.arguments) if "*** Begin Patch" in t), "")
    try:
        calls = [ours for file in read_patch(text) for ours in _file_calls(file)]
    except InvalidPatch as problem:
        return [UnreadablePatch(call.id, call.name, {}, f"{problem}\n{text}")]
    (name, arguments), *rest = calls
    return [
        ToolCall(call.id, name, arguments),
        *(RestOfPatch(f"{call.id}_{n}", *part) for n, part in enumerate(rest, 1)),
    ]


def _decoded(text: str) -> str:
    """Return a patch that came as one JSON text, as transcripts of some agents hold it."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _texts(arguments: Mapping[str, Any]) -> list[str]:
    values = [arguments.get(key) for key in _PATCHES]
    flat = [part for value in values for part in (value if isinstance(value, list) else [value])]
    return [part for part in flat if isinstance(part, str)]


def _file_calls(file: PatchedFile) -> list[tuple[str, dict[str, Any]]]:
    if file.action == "Add":
        # As Codex does it; a file of which the model sees only a part is not replaced.
        new = {"path": file.path, "content": file.content, "mode": "overwrite"}
        return [("write_file", new)]
    if file.action == "Delete":
        return [("delete_file", {"path": file.path})]
    calls: list[tuple[str, dict[str, Any]]] = []
    if edits := file.edits():
        calls.append(("edit_file", {"path": file.path, "edits": edits}))
    if file.move_to:
        calls.append(("move_file", {"path": file.path, "to": file.move_to}))
    if not calls:
        raise InvalidPatch(f"{file.path}: nothing would change")
    return calls


def _completed(call: ToolCall, toolbox: Toolbox) -> ToolCall:
    """Close the brackets of a cut call that only reads; half of a change would be a guess."""
    if not _has(toolbox, call.name) or toolbox.find(call.name).effects != Effect.READ:
        return call
    from json_repair import repair_json

    value = repair_json(call.malformed or "", return_objects=True)
    if not isinstance(value, dict) or not value:
        return call
    return ToolCall(call.id, call.name, value)

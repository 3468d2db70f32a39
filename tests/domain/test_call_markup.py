"""Calls in the markup of model families, as their public chat templates write them."""

from __future__ import annotations

import pytest

from evercontext.domain.call_markup import edit_blocks, python_calls
from evercontext.domain.model import ToolSpec
from evercontext.domain.printed_calls import PrintedCalls

TOOLS = [ToolSpec("readFile", "", {}), ToolSpec("replaceInFile", "", {})]
ARGUMENTS = '{"path": "あ.py"}'
BLOCK = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE"
DEEPSEEK = (
    f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>readFile\n```json\n{ARGUMENTS}\n```"
    "<｜tool▁call▁end｜>"
)
KIMI = (
    f"<|tool_call_begin|>functions.readFile:0<|tool_call_argument_begin|>{ARGUMENTS}"
    "<|tool_call_end|>"
)


def heard(text: str) -> tuple[str, list[tuple[str, dict[str, object]]]]:
    printed = PrintedCalls(TOOLS)
    early = "".join(printed.feed(text[at : at + 3]) for at in range(0, len(text), 3))
    late, calls = printed.finish()
    return early + late, [(call.name, dict(call.arguments)) for call in calls]


@pytest.mark.parametrize(
    "text",
    [
        '<function_calls>\n<invoke name="readFile">\n<parameter name="path">あ.py</parameter>\n'
        "</invoke>\n</function_calls>",
        f"<｜tool▁calls▁begin｜>{DEEPSEEK}<｜tool▁calls▁end｜>",
        f"<|tool_calls_section_begin|>{KIMI}<|tool_calls_section_end|>",
        "<tool_call>readFile\n<arg_key>path</arg_key>\n<arg_value>あ.py</arg_value>\n</tool_call>",
        f'<|tool_call|>[{{"name": "readFile", "arguments": {ARGUMENTS}}}]<|/tool_call|>',
        '[readFile(path="あ.py")]',
        '```tool_code\nprint(default_api.readFile(path="あ.py"))\n```',
        '<minimax:tool_call><invoke name="readFile"><parameter name="path">あ.py</parameter>'
        "</invoke></minimax:tool_call>",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="readFile">\n<｜DSML｜parameter name="path"'
        ' string="true">あ.py</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        '<｜DSML｜tool_calls><｜DSML｜invoke name="readFile">\n{"path": "あ.py"}\n</｜DSML｜invoke>'
        "</｜DSML｜tool_calls>",
        "<seed:tool_call>\n<function=readFile>\n<parameter=path>あ.py</parameter>\n</function>\n"
        "</seed:tool_call>",
        '<|channel|>commentary to=functions.readFile <|constrain|>json<|message|>{"path": "あ.py"}'
        "<|call|>",
        "<|start|>assistant to=functions.readFile<|channel|>commentary<|constrain|>json<|message|>"
        '{"path": "あ.py"}<|call|>',
        '[TOOL_CALLS]readFile{"path": "あ.py"}',
        '[TOOL_CALLS]readFile[CALL_ID]x1[ARGS]{"path": "あ.py"}',
        '<|python_tag|>readFile.call(path="あ.py")',
        '<function=readFile{"path": "あ.py"}></function>',
        '<|tool_call>call:readFile{path:<|"|>あ.py<|"|>}<tool_call|>',
        "<start_function_call>call:readFile{path:<escape>あ.py<escape>}<end_function_call>",
        'functools[{"name": "readFile", "arguments": {"path": "あ.py"}}]',
        '<tool_calls>[{"name": "readFile", "arguments": {"path": "あ.py"}}]</tool_calls>',
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "readFile", "parameters":'
        ' {"path": "あ.py"}}]<|END_ACTION|>',
    ],
)
def test_the_markup_of_families(text: str) -> None:
    """A7: the markup that each family's chat template writes, where a server passes it on."""
    assert heard(text) == ("", [("readFile", {"path": "あ.py"})])


@pytest.mark.parametrize("fence", ["", "```python\n"])
def test_a_search_replace_block_edits_the_file_before_it(fence: str) -> None:
    shown, calls = heard(f"I change it.\n\nsrc/a.py\n{fence}{BLOCK}\n")
    assert shown == f"I change it.\n\nsrc/a.py\n{fence}"
    assert calls == [("replaceInFile", {"path": "src/a.py", "diff": BLOCK})]


def test_a_patch_is_a_call() -> None:
    patch = "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"
    assert heard(f"```\n{patch}\n```") == ("", [("apply_patch", {"input": patch})])


@pytest.mark.parametrize(
    "text",
    [
        f"A block looks like this:\n{BLOCK}\n",
        "src/a.py\n<<<<<<< SEARCH\nold\n=======\nnever closed",
        '[deleteEverything(path="/")]',
        "[1, 2, 3]",
        "*** Begin Patch\nand no end",
        "functools[1, 2]",
        "[TOOL_CALLS]readFile{half",
        '<|tool_call>call:readFile{path:<|"|>a.py',
        "<tool_calls>none</tool_calls>",
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert heard(text) == (text, [])


def test_python_calls_hold_constants_only() -> None:
    assert python_calls("readFile(path=open('/etc/passwd'))") == []
    assert python_calls("readFile('a.py')") == []
    assert python_calls("f(a=1, b=[2])") == [("f", {"a": 1, "b": [2]})]


def test_the_form_that_cline_uses() -> None:
    block = "------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE"
    assert edit_blocks("a.py\n", block) == [("a.py", BLOCK)]

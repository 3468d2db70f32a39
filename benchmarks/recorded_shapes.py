"""Answers of models in shapes that public fixtures and transcripts hold, and where each is found.

The content is our own: a call that reads or fixes ``calc.py``. What surrounds it (tokens, tags, key
names, how it is broken) is as in the file that ``source`` names, read in November 2026.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

SOURCE = "def add(a, b):\n    return a - b\n"
FIXED = SOURCE.replace("a - b", "a + b")
ARGUMENTS = json.dumps({"path": "calc.py"})
EDIT = {"path": "calc.py", "edits": [{"old": "a - b", "new": "a + b"}]}
HUNK = "-    return a - b\n+    return a + b\n"
PATCH = f"*** Begin Patch\n*** Update File: calc.py\n@@\n{HUNK}*** End Patch"
CALL = f'{{"name": "readFile", "arguments": {ARGUMENTS}}}'
LLAMA = f'{{"name": "readFile", "parameters": {ARGUMENTS}}}'
TAGS = "<function=readFile>\n<parameter=path>\ncalc.py\n</parameter>\n</function>"
SEARCH = "<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE"
INVOKE = '<invoke name="readFile">\n<parameter name="path">calc.py</parameter>\n</invoke>'
COMMAND = f'{{"tool_call_id": "0", "tool_name": "readFile", "parameters": {ARGUMENTS}}}'
MESSAGE = f"<|constrain|>json<|message|>{ARGUMENTS}"
REPLACED = '"old_string": "a - b", "new_string": "a + b"'

VLLM = "vllm-project/vllm tests/tool_parsers/"
CODEX = "openai/codex codex-rs/apply-patch/tests/fixtures/scenarios/"
AIDER = "Aider-AI/aider tests/basic/"
CLAUDE_SDK = "anthropics/anthropic-sdk-python tests/lib/streaming/fixtures/"
OPENAI_SDK = "openai/openai-python tests/lib/chat/"
PROJECT = "this project: written from documentation"


@dataclass(frozen=True)
class Case:
    """One answer, and what it meant: to read the file, or to fix it."""

    family: str
    shape: str
    source: str
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    edits: bool = False
    wire: str = "openai"


DSML = (
    '<｜DSML｜invoke name="readFile">\n<｜DSML｜parameter name="path" string="true">calc.py'
    "</｜DSML｜parameter>\n</｜DSML｜invoke>"
)


def _patched(key: str, text: str) -> tuple[tuple[str, str], ...]:
    return (("apply_patch", json.dumps({key: text})),)


def _dsml(body: str, outer: str = "function_calls") -> str:
    return f"<｜DSML｜{outer}>\n{body}\n</｜DSML｜{outer}>"


def _deepseek(inner: str) -> str:
    return (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{inner}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )


NATIVE = [
    Case(
        "GPT",
        "native call in fragments",
        OPENAI_SDK + "test_completions_streaming.py",
        calls=(("readFile", ARGUMENTS),),
    ),
    Case(
        "GPT",
        "two parallel calls",
        OPENAI_SDK + "test_completions_streaming.py",
        calls=(("list", "{}"), ("readFile", ARGUMENTS)),
    ),
    Case("GPT", "native edit", PROJECT, calls=(("replaceInFile", json.dumps(EDIT)),), edits=True),
    Case(
        "GPT",
        "arguments encoded twice",
        PROJECT,
        calls=(("readFile", json.dumps(ARGUMENTS)),),
    ),
    Case("GPT", "name with functions.", PROJECT, calls=(("functions.readFile", ARGUMENTS),)),
    Case(
        "Claude",
        "tool_use with input_json_delta",
        CLAUDE_SDK + "tool_use_response.txt",
        calls=(("readFile", ARGUMENTS),),
        wire="anthropic",
    ),
    Case(
        "Claude",
        "tool_use of which the JSON is broken",
        CLAUDE_SDK + "tool_use_invalid_json_response.txt",
        calls=(("readFile", '{"path": "calc.py", "unit": celsius}'),),
        wire="anthropic",
    ),
    Case("Mistral", "trailing comma", PROJECT, calls=(("readFile", '{"path": "calc.py",}'),)),
    Case("DeepSeek", "single quotes", PROJECT, calls=(("readFile", "{'path': 'calc.py'}"),)),
    Case(
        "DeepSeek",
        "arguments in a fence",
        PROJECT,
        calls=(("readFile", f"```json\n{ARGUMENTS}\n```"),),
    ),
    Case("DeepSeek", "cut before the brace", PROJECT, calls=(("readFile", '{"path": "calc.py"'),)),
]

PRINTED = [
    Case(
        "Claude",
        "function_calls",
        VLLM + "test_minimax_m2_tool_parser.py",
        f"<function_calls>\n{INVOKE}\n</function_calls>",
    ),
    Case(
        "MiniMax",
        "minimax:tool_call",
        VLLM + "test_minimax_m2_tool_parser.py",
        f"Let me check. <minimax:tool_call>{INVOKE}</minimax:tool_call>",
    ),
    Case(
        "Qwen",
        "tool_call with JSON",
        VLLM + "test_hermes_tool_parser.py",
        f"<tool_call>\n{CALL}\n</tool_call>",
    ),
    Case(
        "Qwen",
        "tool_call with function tags",
        VLLM + "test_qwen3coder_tool_parser.py",
        f"<tool_call>\n{TAGS}\n</tool_call>",
    ),
    Case("Qwen", "function tags alone", VLLM + "test_qwen3xml_tool_parser.py", TAGS),
    Case("Qwen", "fenced JSON", PROJECT, f"I will look.\n```json\n{CALL}\n```"),
    Case(
        "Seed",
        "seed:tool_call",
        VLLM + "test_seed_oss_tool_parser.py",
        f"<seed:tool_call>\n{TAGS}\n</seed:tool_call>",
    ),
    Case("Llama", "bare JSON with parameters", VLLM + "test_llama3_json_tool_parser.py", LLAMA),
    Case(
        "Llama",
        "several objects with semicolons",
        VLLM + "test_llama3_json_tool_parser.py",
        f'{{"name": "list", "parameters": {{}}}}; {LLAMA}',
    ),
    Case(
        "Llama",
        "a call inside prose",
        VLLM + "test_llama3_json_tool_parser.py",
        f"Here is the result: {LLAMA} Would you like to know more?",
    ),
    Case(
        "Llama",
        "python_tag with JSON",
        VLLM + "test_llama3_json_tool_parser.py",
        f"<|python_tag|>{LLAMA}",
    ),
    Case(
        "Llama",
        "python_tag with name.call",
        "unslothai/unsloth studio, parser of tool calls",
        '<|python_tag|>readFile.call(path="calc.py")',
    ),
    Case(
        "Llama",
        "a list of Python calls",
        VLLM + "test_llama4_pythonic_tool_parser.py",
        '[readFile(path="calc.py")]',
    ),
    Case(
        "Llama",
        "function= with JSON",
        VLLM + "test_llama3_json_tool_parser.py",
        f"<function=readFile>{ARGUMENTS}</function>",
    ),
    Case(
        "Llama",
        "function= with JSON in its name",
        "failed_generation of Groq's API in public tests of its clients",
        f"<function=readFile{ARGUMENTS}></function>",
    ),
    Case(
        "Llama",
        "function= with JSON in brackets",
        "failed_generation of Groq's API in public tests of its clients",
        f"<function=readFile({ARGUMENTS})>",
    ),
    Case("Llama", "type function", PROJECT, f'{{"type": "function", {LLAMA[1:]}'),
    Case(
        "Mistral",
        "TOOL_CALLS and a list",
        VLLM + "test_mistral_tool_parser.py",
        f"[TOOL_CALLS] [{CALL}]",
    ),
    Case(
        "Mistral",
        "TOOL_CALLS, name and object",
        VLLM + "test_mistral_tool_parser.py",
        f"[TOOL_CALLS]readFile{ARGUMENTS}",
    ),
    Case(
        "Mistral",
        "TOOL_CALLS, name and ARGS",
        VLLM + "test_mistral_tool_parser.py",
        f"[TOOL_CALLS]readFile[ARGS]{ARGUMENTS}",
    ),
    Case(
        "DeepSeek",
        "R1: tokens and a fence",
        VLLM + "test_deepseekv3_tool_parser.py",
        _deepseek(f"function<｜tool▁sep｜>readFile\n```json\n{ARGUMENTS}\n```"),
    ),
    Case(
        "DeepSeek",
        "V3.1: tokens",
        VLLM + "test_deepseekv31_tool_parser.py",
        "normal text" + _deepseek(f"readFile<｜tool▁sep｜>{ARGUMENTS}"),
    ),
    Case(
        "DeepSeek",
        "V3.2: DSML",
        VLLM + "test_deepseekv32_tool_parser.py",
        _dsml(DSML),
    ),
    Case(
        "DeepSeek",
        "V4: DSML",
        VLLM + "test_deepseekv4_tool_parser.py",
        _dsml(
            DSML,
            "tool_calls",
        ),
    ),
    Case(
        "DeepSeek",
        "V3.2: DSML with an object",
        "sgl-project/sglang python/sglang/srt/function_call/deepseekv32_detector.py",
        _dsml(f'<｜DSML｜invoke name="readFile">\n{ARGUMENTS}\n</｜DSML｜invoke>'),
    ),
    Case(
        "Kimi",
        "tokens",
        VLLM + "test_kimi_k2_tool_parser.py",
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.readFile:0<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    Case(
        "Kimi",
        "tokens with spaces between them",
        "a public transcript: Kimi's answer as text",
        "<|tool_calls_section_begin|> <|tool_call_begin|> functions.readFile:22 "
        f"<|tool_call_argument_begin|> {ARGUMENTS} <|tool_call_end|> <|tool_calls_section_end|>",
    ),
    Case(
        "GLM",
        "arg_key and arg_value",
        VLLM + "test_glm4_moe_tool_parser.py",
        "<tool_call>readFile\n<arg_key>path</arg_key>\n<arg_value>calc.py</arg_value>\n</tool_call>",
    ),
    Case(
        "gpt-oss",
        "harmony commentary",
        VLLM + "test_openai_tool_parser.py",
        f"<|channel|>commentary to=functions.readFile {MESSAGE}<|call|>",
    ),
    Case(
        "gpt-oss",
        "harmony without functions.",
        "RooCodeInc/Roo-Code src/api/providers/__tests__/lmstudio.spec.ts",
        f"<|start|>assistant<|channel|>commentary to=readFile {MESSAGE}",
    ),
    Case(
        "gpt-oss",
        "harmony, recipient first",
        "openai/harmony docs/format.md",
        f"<|start|>assistant to=functions.readFile<|channel|>commentary{MESSAGE}<|call|>",
    ),
    Case(
        "Gemma",
        "tool_code",
        "google-gemini cookbook, function calling with Gemma",
        '```tool_code\nreadFile(path="calc.py")\n```',
    ),
    Case(
        "Gemma",
        "Gemma 4 tokens",
        VLLM + "test_gemma4_tool_parser.py",
        '<|tool_call>call:readFile{path:<|"|>calc.py<|"|>}<tool_call|>',
    ),
    Case(
        "Gemma",
        "FunctionGemma tokens",
        VLLM + "test_functiongemma_tool_parser.py",
        "<start_function_call>call:readFile{path:<escape>calc.py<escape>}<end_function_call>",
    ),
    Case(
        "Granite",
        "tool_call token and a list",
        VLLM + "test_granite_tool_parser.py",
        f"<|tool_call|>[{CALL}]",
    ),
    Case(
        "Phi", "functools and a list", VLLM + "test_phi4mini_tool_parser.py", f"functools[{CALL}]"
    ),
    Case(
        "Jamba",
        "tool_calls and a list",
        VLLM + "test_jamba_tool_parser.py",
        f"<tool_calls>[\n    {CALL}\n]</tool_calls>",
    ),
    Case(
        "Hunyuan",
        "tool_calls and a list",
        VLLM + "test_hunyuan_a13b_tool_parser.py",
        f"<tool_calls>[{CALL}]</tool_calls>",
    ),
    Case(
        "Command",
        "START_ACTION",
        VLLM + "test_cohere_command_tool_parser.py",
        f"<|START_ACTION|>[{COMMAND}]<|END_ACTION|>",
    ),
]

EDITS = [
    Case(
        "GPT",
        "apply_patch with input",
        CODEX + "003_multiple_chunks",
        calls=_patched("input", PATCH),
        edits=True,
    ),
    Case(
        "GPT",
        "apply_patch with patch",
        "public agents' fixtures of apply_patch",
        calls=_patched("patch", PATCH),
        edits=True,
    ),
    Case(
        "GPT",
        "apply_patch with patchText",
        "anomalyco/opencode packages/opencode/test/tool/apply_patch.test.ts",
        calls=_patched("patchText", PATCH),
        edits=True,
    ),
    Case(
        "GPT",
        "apply_patch with command",
        "hooks of Codex CLI: tool_input of apply_patch",
        calls=_patched("command", PATCH),
        edits=True,
    ),
    Case(
        "GPT",
        "apply_patch as free text",
        "openai/codex custom tool calls in transcripts",
        calls=(("apply_patch", PATCH),),
        edits=True,
    ),
    Case(
        "GPT",
        "apply_patch as a JSON text",
        "public transcripts of Copilot CLI and Cursor",
        calls=(("apply_patch", json.dumps(PATCH)),),
        edits=True,
    ),
    Case(
        "GPT",
        "apply_patch through shell",
        "openai/codex codex-rs/apply-patch/src/invocation.rs",
        calls=(("shell", json.dumps({"command": ["apply_patch", PATCH]})),),
        edits=True,
    ),
    Case("GPT", "apply_patch printed", PROJECT, text=f"```\n{PATCH}\n```", edits=True),
    Case(
        "GPT",
        "patch with padded markers",
        CODEX + "018_whitespace_padded_patch_markers",
        calls=_patched("input", f" {PATCH} "),
        edits=True,
    ),
    Case(
        "GPT",
        "patch with a padded hunk header",
        CODEX + "017_whitespace_padded_hunk_header",
        calls=_patched("input", PATCH.replace("*** Update", "  *** Update")),
        edits=True,
    ),
    Case(
        "GPT",
        "patch with the end of the file",
        CODEX + "022_update_file_end_of_file_marker",
        calls=_patched("input", PATCH.replace("*** End Patch", "*** End of File\n*** End Patch")),
        edits=True,
    ),
    Case(
        "GPT",
        "patch with a line of context in its header",
        CODEX + "003_multiple_chunks",
        calls=_patched("input", PATCH.replace("@@\n", "@@ def add(a, b):\n")),
        edits=True,
    ),
    Case(
        "GPT-4",
        "search/replace block",
        AIDER + "test_editblock.py",
        f"calc.py\n{SEARCH}",
        edits=True,
    ),
    Case(
        "GPT-4",
        "search/replace in a fence",
        AIDER + "test_editblock.py",
        f"Here's the change:\n\ncalc.py\n```python\n{SEARCH}\n```\n",
        edits=True,
    ),
    Case(
        "Claude",
        "search/replace after prose",
        "aider's SWE-bench transcripts: path, fence, block",
        f"Here are the necessary changes:\n\ncalc.py\n```python\n{SEARCH}\n```\n\nDone.",
        edits=True,
    ),
    Case(
        "Gemini",
        "search/replace with the path in the fence",
        AIDER + "test_editblock.py (diff-fenced)",
        f"```python\ncalc.py\n{SEARCH}\n```",
        edits=True,
    ),
    Case(
        "Claude",
        "Claude Code's Edit",
        "public transcripts of Claude Code",
        calls=(("Edit", f'{{"file_path": "calc.py", {REPLACED}}}'),),
        edits=True,
    ),
    Case(
        "Claude",
        "Claude Code's Read",
        "public transcripts of Claude Code",
        calls=(("Read", '{"file_path": "calc.py"}'),),
    ),
    Case(
        "Claude",
        "text editor tool",
        "Anthropic's documentation of the text editor tool",
        calls=(
            (
                "str_replace_based_edit_tool",
                '{"command": "str_replace", "path": "calc.py", "old_str": "a - b",'
                ' "new_str": "a + b"}',
            ),
        ),
        edits=True,
    ),
    Case(
        "Kimi",
        "opencode's edit",
        "anomalyco/opencode packages/opencode/test/tool/edit.test.ts",
        calls=(("edit", '{"filePath": "calc.py", "oldString": "a - b", "newString": "a + b"}'),),
        edits=True,
    ),
    Case(
        "Gemini",
        "Gemini CLI's replace",
        "google-gemini/gemini-cli packages/core/src/tools/edit.test.ts",
        calls=(("replace", f'{{"file_path": "calc.py", {REPLACED}}}'),),
        edits=True,
    ),
    Case(
        "Gemini",
        "absolute_path",
        "google-gemini/gemini-cli packages/core/src/tools/read-file.test.ts",
        calls=(("read_file", '{"absolute_path": "calc.py"}'),),
    ),
    Case(
        "Cline",
        "replace_in_file with a diff",
        "cline/cline tests of replace_in_file",
        calls=(("replace_in_file", json.dumps({"path": "calc.py", "diff": SEARCH})),),
        edits=True,
    ),
]

CASES = [*NATIVE, *PRINTED, *EDITS]

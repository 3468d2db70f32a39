"""References by the index against those of a language server: precision and recall by certainty.

    npm install pyright typescript typescript-language-server   # in any folder
    python benchmarks/structure.py ROOT --server "…/pyright-langserver --stdio" [--language python]
    python benchmarks/structure.py ROOT --server "…/typescript-language-server --stdio" \
        --language typescript
    python benchmarks/structure.py ROOT --server gopls --language go

Every definition of the tree (tests left out) is a candidate; SAMPLE of them are drawn with a fixed
seed. For each, both sides name the lines that refer to it; lines outside of ROOT do not count, nor
do the definitions themselves. The server must know the tree's dependencies to resolve through them,
so it is no perfect truth: what it does not find is counted against us.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from evercontext.index.code_search import CodeIndex
from evercontext.index.languages import language_of
from evercontext.index.structure.outline import outline
from evercontext.index.structure.questions import StructureQuestions
from evercontext.index.structure.resolver import CERTAINTIES
from evercontext.index.structure.source import Symbol
from evercontext.index.structure.source_tree import SourceTree

SAMPLE = 200
SEED = 20_26
Lines = set[tuple[str, int]]
LANGUAGE_IDS = {"tsx": "typescriptreact"}


class LanguageServer:
    """A language server on its standard streams."""

    def __init__(self, command: str, root: Path) -> None:
        self._process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=root,
        )
        self._root = root
        self._number = 0
        uri = root.as_uri()
        folders = [{"uri": uri, "name": root.name}]
        self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": uri,
                "workspaceFolders": folders,
                "capabilities": {"workspace": {"configuration": True, "workspaceFolders": True}},
            },
        )
        self.notify("initialized", {})

    def notify(self, method: str, params: Any) -> None:
        """Send a message that is not answered."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        """Send a request and return its result; what the server asks meanwhile is answered."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            message = self._read()
            if "method" in message and "id" in message:
                asked = message.get("params") or {}
                empty = [{} for _ in asked.get("items", [])]
                is_configuration = message["method"] == "workspace/configuration"
                answer = empty if is_configuration else None
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": answer})
            elif message.get("id") == self._number:
                return message.get("result")

    def references(self, path: str, line: int, column: int) -> Lines:
        """Return the lines that the server names for the symbol at a place."""
        places = self.request(
            "textDocument/references",
            {
                "textDocument": {"uri": (self._root / path).as_uri()},
                "position": {"line": line, "character": column},
                "context": {"includeDeclaration": False},
            },
        )
        found: Lines = set()
        for place in places or []:
            file = Path(unquote(urlsplit(place["uri"]).path))
            if file.is_relative_to(self._root):
                name = file.relative_to(self._root).as_posix()
                found.add((name, place["range"]["start"]["line"] + 1))
        return found

    def open(self, path: str) -> None:
        """Show a file to the server."""
        text = (self._root / path).read_text("utf-8")
        language = language_of(path) or ""
        document = {"uri": (self._root / path).as_uri(), "version": 1, "text": text}
        document["languageId"] = LANGUAGE_IDS.get(language, language)
        self.notify("textDocument/didOpen", {"textDocument": document})

    def close(self) -> None:
        """End the server."""
        self.request("shutdown", None)
        self.notify("exit", None)
        self._process.wait(10)

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        size = 0
        while (line := stream.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        if not size:
            raise SystemExit("the language server ended")
        return json.loads(stream.read(size))


def candidates(tree: SourceTree, language: str, prefix: str) -> list[Symbol]:
    """Return the definitions that may be asked about."""
    symbols = []
    kinds = {language, "tsx"} if language == "typescript" else {language}
    for path in tree.paths:
        is_test = "test" in path.lower() or "example" in path.lower() or "docs/" in path
        if language_of(path) not in kinds or is_test or not path.startswith(prefix):
            continue
        source = tree.source(path)
        if source is not None:
            symbols += [s for s in outline(source) if not s.name.startswith("__")]
    return symbols


async def measure(options: argparse.Namespace) -> None:
    """Print precision and recall over a sample of definitions."""
    root = Path(options.root).resolve()
    with tempfile.TemporaryDirectory() as folder:
        index = await CodeIndex.open(root, folder=Path(folder), use_vectors=False)
        await index.update()
        async with index.corpus() as corpus:
            compare(options, root, lambda: SourceTree(corpus, index.indexer.reader))
        await index.close()


def compare(options: argparse.Namespace, root: Path, new_tree: Any) -> None:
    """Ask both sides about each symbol of the sample."""
    symbols = candidates(new_tree(), options.language, options.prefix)
    random.Random(SEED).shuffle(symbols)
    symbols = symbols[: options.sample]
    server = LanguageServer(options.server, root)
    right: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    shown: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    expected: dict[str, int] = defaultdict(int)
    seconds = []
    opened: set[str] = set()
    for symbol in symbols:
        if symbol.path not in opened:
            server.open(symbol.path)
            opened.add(symbol.path)
        line = (root / symbol.path).read_text("utf-8").split("\n")[symbol.line - 1]
        truth = server.references(symbol.path, symbol.line - 1, line.index(symbol.name))
        started = time.process_time()
        questions = StructureQuestions(new_tree())
        answer = questions.ask("references", symbol.qualified_name, symbol.path, limit=100_000)
        seconds.append(time.process_time() - started)
        own = {(s.path, s.line) for s in answer.definitions}
        # One file may define several things of one name: only the one that was asked about counts.
        if len(own) > 1:
            continue
        truth -= own
        kind = "member" if symbol.owner else "top level"
        expected[kind] += len(truth)
        lines: dict[tuple[str, int], str] = {}
        for place in answer.places:
            lines.setdefault((place.path, place.line), place.certainty)
        for where, certainty in lines.items():
            shown[kind][certainty] += 1
            right[kind][certainty] += where in truth
            if options.verbose and where not in truth:
                print("  extra ", symbol.qualified_name, symbol.path, *where, certainty)
        if options.verbose:
            for where in sorted(truth - set(lines)):
                print("  missed", symbol.qualified_name, symbol.path, *where)
    server.close()
    report(right, shown, expected, seconds)


def report(
    right: dict[str, dict[str, int]],
    shown: dict[str, dict[str, int]],
    expected: dict[str, int],
    seconds: list[float],
) -> None:
    """Print the figures, each row with all that is surer than it."""
    ordered = sorted(seconds)
    print(f"{len(seconds)} symbols, {sum(expected.values())} references by the server")
    print(f"CPU per question: p50 {ordered[len(ordered) // 2] * 1000:.1f} ms, ", end="")
    print(f"p95 {ordered[len(ordered) * 95 // 100] * 1000:.1f} ms")
    for kind in [*sorted(expected), "all"]:
        kinds = sorted(expected) if kind == "all" else [kind]
        total = sum(expected[k] for k in kinds)
        right_so_far = shown_so_far = 0
        for certainty in CERTAINTIES:
            own_right = sum(right[k][certainty] for k in kinds)
            own_shown = sum(shown[k][certainty] for k in kinds)
            right_so_far += own_right
            shown_so_far += own_shown
            print(
                f"{kind:10} {certainty:10} alone {own_right:5}/{own_shown:<5}"
                f"  up to here: precision {right_so_far / max(1, shown_so_far):.3f}"
                f"  recall {right_so_far / max(1, total):.3f}"
            )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("root")
    parser.add_argument("--server", required=True, help="command of a language server on stdio")
    parser.add_argument("--language", default="python")
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--prefix", default="", help="only definitions below this folder")
    parser.add_argument("--verbose", action="store_true", help="print every difference")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())

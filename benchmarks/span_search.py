"""Docstring → function, by lines: does the shown chunk overlap the function that was meant?

    span_search.py PACKAGE_FOLDER... [--sample 300]

Copies installed packages without their docstrings, indexes the copy, asks with the first sentence
of each docstring that was taken out, and prints hit@1, hit@5, hit@10 by line overlap.
"""

import argparse
import ast
import asyncio
import pathlib
import random
import tempfile

from evercontext.index.code_search import CodeIndex

LEAST_WORDS = 4


def strip(source):
    """Return the source without docstrings, and (first sentence, first line, last line)."""
    lines, found = source.split("\n"), []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        text = ast.get_docstring(node)
        if not text or not isinstance(node.body[0], ast.Expr):
            continue
        doc = node.body[0]
        for i in range(doc.lineno - 1, doc.end_lineno):
            lines[i] = ""
        lines[doc.lineno - 1] = " " * doc.col_offset + "pass" if len(node.body) == 1 else ""
        sentence = " ".join(text.split("\n\n")[0].split()).split(". ")[0]
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and len(sentence.split()) >= LEAST_WORDS and not node.name.startswith("__"):
            found.append((sentence[:300], node.lineno, node.end_lineno))
    return "\n".join(lines), found


def copy(packages, target):
    questions = []
    for package in packages:
        for file in sorted(package.rglob("*.py")):
            try:
                text, found = strip(file.read_text("utf-8"))
            except (SyntaxError, UnicodeDecodeError, ValueError):
                continue
            path = f"{package.name}/{file.relative_to(package).as_posix()}"
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(text, "utf-8")
            questions += [(sentence, path, first, last) for sentence, first, last in found]
    return questions


async def measure(packages, sample):
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        questions = copy(packages, tree)
        index = await CodeIndex.open(tree)
        report = await index.update()
        chosen = random.Random(5).sample(questions, min(sample, len(questions)))
        ranks = []
        for sentence, path, first, last in chosen:
            hits = (await index.search(sentence, 10, fresh=False)).hits
            ranks.append(
                next(
                    (
                        i
                        for i, h in enumerate(hits)
                        if h.path == path and h.start_line <= last and h.end_line >= first
                    ),
                    None,
                )
            )
        await index.close()
    shares = {k: sum(r is not None and r < k for r in ranks) / len(ranks) for k in (1, 5, 10)}
    said = " ".join(f"hit@{k} {v:.3f}" for k, v in shares.items())
    print(f"{report.added} files, {report.embedded} chunks, {len(ranks)} questions: {said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="+", type=pathlib.Path)
    parser.add_argument("--sample", type=int, default=300)
    given = parser.parse_args()
    asyncio.run(measure(given.packages, given.sample))


if __name__ == "__main__":
    main()

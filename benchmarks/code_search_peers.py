"""Run semble (BM25 + ranking) and tantivy on the code-search set; needs both installed.

    code_search_peers.py {semble|tantivy} {root|whole} TREES REPOS.json QUERIES.jsonl OUT.jsonl

Writes one result line per question and prints index CPU ms and query CPU p50/p95. Only the CPU of
the peer's own calls is counted; semble's vectors are switched off, as their model cannot be had
offline, and its hybrid figure is quoted from its own publication.
"""

import collections
import json
import pathlib
import re
import sys
import time

WINDOW = 50


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def semble_engine(root):
    import numpy as np
    from semble.index import create
    from semble.search import search
    from semble.types import ContentType

    class NoModel:
        dim = 1

        def encode(self, texts, **_):
            return np.ones((len(texts), 1), np.float32)

    create.embed_chunks = lambda model, chunks: np.ones((len(chunks), 1), np.float32)
    model = NoModel()
    bm25, dense, chunks, _ = create.create_index_from_path(
        root.resolve(), model, (ContentType.CODE,), root.resolve()
    )

    def ask(query):
        found = search(query, model, dense, bm25, chunks, 10, alpha=0.0)
        return [(r.chunk.file_path, r.chunk.start_line, r.chunk.end_line) for r in found]

    return ask, len(chunks)


def tantivy_engine(root):
    import tantivy
    from semble.index.file_walker import walk_files
    from semble.index.files import get_extensions
    from semble.types import ContentType

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("path", stored=True)
    builder.add_text_field("body", stored=False, tokenizer_name="en_stem")
    for name in ("start", "end"):
        builder.add_integer_field(name, stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer(50_000_000, 1)
    count = 0
    for file in walk_files(root, get_extensions((ContentType.CODE,))):
        lines = file.read_text("utf-8", "replace").split("\n")
        for first in range(0, len(lines), WINDOW):
            body = "\n".join(lines[first : first + WINDOW])
            writer.add_document(
                tantivy.Document(
                    path=str(file.relative_to(root)), body=body, start=first + 1, end=first + WINDOW
                )
            )
            count += 1
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def ask(query):
        words = " ".join(re.findall(r"\w+", query)) or "x"
        hits = searcher.search(index.parse_query(words, ["body"]), 10).hits
        found = (searcher.doc(address) for _, address in hits)
        return [(d["path"][0], d["start"][0], d["end"][0]) for d in found]

    return ask, count


def main():
    engine, mode, trees, repos_file, queries_file, out = sys.argv[1:7]
    make = {"semble": semble_engine, "tantivy": tantivy_engine}[engine]
    queries = collections.defaultdict(list)
    for line in pathlib.Path(queries_file).read_text("utf-8").splitlines():
        row = json.loads(line)
        queries[row["repo"]].append(row["query"])
    index_ms, query_ms, chunks = [], [], []
    with open(out, "w", encoding="utf-8") as results:
        for repo in json.loads(pathlib.Path(repos_file).read_text("utf-8")):
            root = (
                pathlib.Path(trees)
                / repo["name"]
                / (repo["root"] if mode == "root" else repo.get("whole", ""))
            )
            started = time.process_time()
            ask, count = make(root)
            index_ms.append(1000 * (time.process_time() - started))
            chunks.append(count)
            for query in queries[repo["name"]]:
                started = time.process_time()
                found = ask(query)
                query_ms.append(1000 * (time.process_time() - started))
                shown = [{"path": p, "start_line": a, "end_line": b} for p, a, b in found]
                line = {"repo": repo["name"], "query": query, "results": shown}
                results.write(json.dumps(line) + "\n")
    print(
        f"{engine:8s} {mode:5s} index CPU ms mean {sum(index_ms) / len(index_ms):.0f} total "
        f"{sum(index_ms):.0f}, chunks {sum(chunks)}, query CPU ms "
        f"p50 {percentile(query_ms, 0.5):.2f} p95 {percentile(query_ms, 0.95):.2f}"
    )


if __name__ == "__main__":
    main()

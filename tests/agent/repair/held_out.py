"""Projects that nobody looked at while the fixers were written, and code of Python's own."""

from __future__ import annotations

import importlib
import inspect
import re
import sys

from tests.agent.repair.samples import Sample

DIARY = Sample(
    "diary",
    "python",
    {
        "diary/__init__.py": '"""日記。"""\n\nfrom .book import Book\n\n__all__ = ["Book"]\n',
        "diary/entry.py": '''"""One entry."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date

WORDS = re.compile(r"\\w+")


@dataclass(frozen=True)
class Entry:
    """What was written on a day."""

    day: date
    text: str
    tags: tuple[str, ...] = field(default=())

    def words(self) -> list[str]:
        """The words, in lower case."""
        return [word.lower() for word in WORDS.findall(self.text)]
''',
        "diary/book.py": '''"""All entries."""

from __future__ import annotations

from datetime import date
from itertools import groupby

from .entry import Entry
from .search import ranked


class Book:
    """A diary."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, day: date, text: str, tags: tuple[str, ...] = ()) -> Entry:
        """Add an entry and keep the order."""
        entry = Entry(day, text, tags)
        self.entries.append(entry)
        self.entries.sort(key=lambda one: one.day)
        return entry

    def months(self) -> dict[tuple[int, int], int]:
        """How many entries each month has."""
        counted = {}
        for month, group in groupby(self.entries, key=lambda one: (one.day.year, one.day.month)):
            counted[month] = len(list(group))
        return counted

    def find(self, query: str, limit: int = 3) -> list[Entry]:
        """The best entries for some words."""
        return ranked(self.entries, query, limit=limit)
''',
        "diary/search.py": '''"""Search."""

from __future__ import annotations

from collections import Counter


def score(words, query):
    """How often the words of the query occur."""
    counted = Counter(words)
    return sum(counted[word] for word in query.lower().split())


def ranked(entries, query, limit=3):
    """Entries with the best score first."""
    scored = [(score(entry.words(), query), entry) for entry in entries]
    useful = [pair for pair in scored if pair[0] > 0]
    useful.sort(key=lambda pair: -pair[0])
    return [entry for _, entry in useful[:limit]]
''',
        "diary/store.py": '''"""Reading and writing."""

import csv
from datetime import date
from pathlib import Path

from diary.book import Book

HERE = Path(__file__).parent


def read_book(name="examples/first.csv"):
    """Read a book from a table."""
    book = Book()
    with (HERE / name).open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            book.write(date.fromisoformat(row["day"]), row["text"])
    return book
''',
        "diary/examples/first.csv": "day,text\n2024-03-01,rain and rain\n2024-02-01,雪 snow\n",
        "tests/__init__.py": "",
        "tests/test_diary.py": """from datetime import date

from diary import Book
from diary.search import ranked, score
from diary.store import read_book


def test_order():
    book = read_book()
    assert [entry.day.month for entry in book.entries] == [2, 3]


def test_months():
    assert read_book().months() == {(2024, 2): 1, (2024, 3): 1}


def test_find():
    book = read_book()
    assert book.find("rain", limit=1)[0].text == "rain and rain"
    assert book.find("sun") == []


def test_score():
    assert score(["a", "b", "a"], "A") == 2
    assert ranked([], "a", limit=2) == []


def test_write():
    book = Book()
    entry = book.write(date(2024, 1, 2), "Hello World", tags=("x",))
    assert entry.words() == ["hello", "world"]
""",
    },
)

QUEUE_JS = Sample(
    "queue-js",
    "javascript",
    {
        "package.json": '{"name": "queue", "type": "module", "scripts": {"test": "node --test"}}\n',
        "lib/heap.js": """export class Heap {
  constructor(compare) {
    this.compare = compare;
    this.values = [];
  }

  get size() {
    return this.values.length;
  }

  append(value) {
    this.values.push(value);
    this.values.sort(this.compare);
  }

  takeFirst() {
    return this.values.shift();
  }
}
""",
        "lib/queue.js": """import { join } from "node:path";
import { Heap } from "./heap.js";

const byUrgency = (left, right) => right.urgency - left.urgency;

export function makeQueue() {
  return new Heap(byUrgency);
}

export function describe(folder, job) {
  const place = join(folder, job.name);
  return `${place} (${job.urgency})`;
}

export function drain(queue, folder) {
  const lines = [];
  while (queue.size > 0) {
    lines.push(describe(folder, queue.takeFirst()));
  }
  return lines;
}
""",
        "test/queue.test.js": """import assert from "node:assert/strict";
import { test } from "node:test";
import { Heap } from "../lib/heap.js";
import { describe, drain, makeQueue } from "../lib/queue.js";

test("heap", () => {
  const heap = new Heap((a, b) => a - b);
  heap.append(2);
  heap.append(1);
  assert.equal(heap.takeFirst(), 1);
});

test("describe", () => assert.equal(describe("a", { name: "b", urgency: 1 }), "a/b (1)"));

test("drain", () => {
  const queue = makeQueue();
  queue.append({ name: "x", urgency: 1 });
  queue.append({ name: "y", urgency: 5 });
  assert.deepEqual(drain(queue, "t"), ["t/y (5)", "t/x (1)"]);
});
""",
    },
)

WORDS_RS = Sample(
    "words-rs",
    "rust",
    {
        "Cargo.toml": '[package]\nname = "words"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": """use std::collections::BTreeMap;
use std::fmt;

pub mod clean;

use crate::clean::normalized;

pub struct Table {
    counts: BTreeMap<String, usize>,
}

impl Table {
    pub fn from_text(text: &str) -> Table {
        let mut counts = BTreeMap::new();
        for word in text.split_whitespace() {
            let cleaned = normalized(word);
            *counts.entry(cleaned).or_insert(0) += 1;
        }
        Table { counts }
    }

    pub fn count(&self, word: &str) -> usize {
        let wanted = normalized(word);
        self.counts.get(&wanted).copied().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        for (word, count) in &self.counts {
            writeln!(formatter, "{word}: {count}")?;
        }
        Ok(())
    }
}
""",
        "src/clean.rs": """pub fn normalized(word: &str) -> String {
    let lowered = word.to_lowercase();
    lowered.trim_matches('.').to_string()
}

pub fn longest(words: &[&str]) -> usize {
    let lengths = words.iter().map(|word| word.len());
    lengths.max().unwrap_or(0) + 0
}
""",
        "tests/words.rs": """use words::clean::longest;
use words::Table;

#[test]
fn counts() {
    let table = Table::from_text("Rain rain. 雨");
    assert_eq!(table.count("RAIN"), 2);
    assert_eq!(table.to_string().lines().count(), 2);
}

#[test]
fn length() {
    assert_eq!(longest(&["a", "abc"]), 3);
}
""",
    },
)

_CALLS = {
    "textwrap": (
        "wrap('the quick brown fox jumps', 10)",
        "dedent('  a\\n   b\\n')",
        "shorten('hello wide world', width=11)",
        "fill('a b c d', width=3)",
        "indent('a\\nb', '> ')",
    ),
    "shlex": ("split('a \\'b c\\' d')", "join(['a', 'b c'])", "quote('a b')"),
    "bisect": ("bisect_left([1, 2, 2, 3], 2)", "bisect_right([1, 2, 2, 3], 2)"),
    "fractions": ("str(Fraction('0.75') + Fraction(1, 4))", "Fraction(3, 6).numerator"),
    "colorsys": ("rgb_to_hls(1.0, 0.5, 0.25)", "hsv_to_rgb(0.5, 0.5, 0.4)"),
    "statistics": ("mean([1, 2, 6])", "median([5, 1, 3])", "pstdev([1, 3])", "mode('aab')"),
}


def _installed(name: str, calls: tuple[str, ...]) -> Sample:
    """A module of Python's standard library, as a project of its own."""
    module = importlib.import_module(name)
    known = dict(vars(module))
    facts = [(call, eval(call, known)) for call in calls]
    tests = "\n\n".join(
        f"    def test_{number}(self):\n        assert {_qualified(call, known)} == {value!r}"
        for number, (call, value) in enumerate(facts)
    )
    head = f"import unittest\n\nimport lib_{name}.{name}_copy as copy\n\n\n"
    path = f"lib_{name}/{name}_copy.py"
    return Sample(
        f"stdlib {name}",
        "python",
        {
            f"lib_{name}/__init__.py": "",
            path: inspect.getsource(module),
            "tests/__init__.py": "",
            f"tests/test_{name}.py": f"{head}class CopyTest(unittest.TestCase):\n{tests}\n",
        },
        {"test_cmd": f"{sys.executable} -m unittest discover -q -s tests -t ."},
    )


def _qualified(call: str, known: dict[str, object]) -> str:
    return re.sub(
        r"\b([A-Za-z_]\w*)(?=\()", lambda m: f"copy.{m[1]}" if m[1] in known else m[1], call
    )


INSTALLED = tuple(_installed(name, calls) for name, calls in _CALLS.items())
HELD_OUT = (DIARY, QUEUE_JS, WORDS_RS)

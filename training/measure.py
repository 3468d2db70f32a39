"""Measures shared by training and evaluation."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from evercontext.retrieval.static_vectors import StaticVectors


def reciprocal_rank(scores: Any, depth: int = 10) -> float:
    """Return MRR of the diagonal of a score matrix."""
    values = np.asarray(scores.float().cpu() if hasattr(scores, "cpu") else scores)
    own = np.diagonal(values)[:, None]
    rank = 1 + (values > own).sum(axis=1) + ((values == own).sum(axis=1) - 1) / 2
    return float(np.where(rank <= depth, 1 / rank, 0.0).mean())


def tool_text(tool: dict[str, Any]) -> str:
    """Return what a tool says of itself, on one line."""
    parameters = " ".join(f"{p['name']} {p.get('description') or ''}" for p in tool["params"] or [])
    name = tool["toolName"]
    return f"{tool['serverName']} {name} {name} {tool['description']} {parameters[:400]}"


def hits(order: np.ndarray, keys: list[str], wanted: set[str]) -> tuple[float, float]:
    """Return hit@1 and hit@5."""
    return float(keys[order[0]] in wanted), float(any(keys[i] in wanted for i in order[:5]))


def measure_tools(path: Path, folder: Path) -> dict[str, str]:
    """Return hit@1/hit@5 of the vectors alone on the tool questions, by set."""
    model = StaticVectors(path)
    tools = json.loads((folder / "tools.json").read_text())
    questions = [
        json.loads(line) for line in (folder / "dev_queries.jsonl").read_text().splitlines()
    ]
    keys = [tool["toolKey"] for tool in tools]
    table = model.encode([tool_text(tool) for tool in tools])
    found = defaultdict(list)
    asked = model.encode_questions([q["query"] for q in questions])
    for question, vector in zip(questions, asked, strict=True):
        order = np.argsort(-(table @ vector), kind="stable")
        found[question["set"]].append(hits(order, keys, set(question["relevant"])))
    return {
        name: "/".join(f"{x:.3f}" for x in np.mean(rows, axis=0)) for name, rows in found.items()
    }

"""Print the questions of the stranger test, or mark the answers of somebody who took it.

    python scripts/stranger_questions.py               the files, then the questions
    python scripts/stranger_questions.py ANSWERS       how many were right, and which were not

Someone who has never seen the code gets the list of files and nothing else, and names a file for
each question, with a second guess behind a comma. ANSWERS has one line for each question, in order.
A name that fails is a name to change. The goal: 38 of 40 at the first guess, 40 with two.
"""

from __future__ import annotations

import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "evercontext"
QUESTIONS = {
    "Where is it decided which parts of a conversation are left out to fit the window?": (
        "context/conversation_window.py"
    ),
    "Where are the tokens of a text counted or estimated?": "context/token_estimate.py",
    "Where are corrections of the token estimate stored between runs?": (
        "context/token_calibration.py"
    ),
    "Where are memories recalled before a task, and what it did stored afterwards?": (
        "context/memory_service.py"
    ),
    "Where is a long chat replaced by a summary and its newest messages?": "agent/compaction.py",
    "Where does the agent ask the model, make its calls and send the results, again and again?": (
        "agent/loop.py"
    ),
    "Where is the outcome of a task decided from what happened?": "agent/judgement.py",
    "Where is the system prompt of the agent written?": "agent/system_prompt.py",
    "Where are the failures that a project had before the task told from new ones?": (
        "agent/baseline.py"
    ),
    "Where does a strong model turn a task into a plan?": "agent/planner.py",
    "Where is work given to a sub-agent?": "agent/subagent.py",
    "Where are calls that a model repeats without progress noticed?": "agent/repetition.py",
    "Where is a missing Python import added by an automatic repair?": (
        "agent/repair/fixers/imports.py"
    ),
    "Where is a rule such as `run_command(git status*)` parsed and matched?": (
        "access/approval_rules.py"
    ),
    "Where is listed what is never allowed without asking?": "access/never_auto_approved.py",
    "Where are access tokens created and checked against their hashes?": "access/access_tokens.py",
    "Where is a tool call validated, approved, run and recorded, for every entrance?": (
        "tools/toolbox.py"
    ),
    "Where are the user's hooks started around a tool call?": "tools/hook_runner.py",
    "Where is a source file cut into chunks at functions and headings?": "index/chunker.py",
    "Where is it ensured that only one process at a time updates an index?": "index/lease.py",
    "Where are the hits of a code search put in order?": "index/ranking.py",
    "Where are files found that git ignores, so that they are not indexed?": (
        "index/ignore_files.py"
    ),
    "Where are Japanese words of a question translated into English search terms?": (
        "retrieval/japanese_dictionary.py"
    ),
    "Where are documents scored by BM25F?": "retrieval/bm25f.py",
    "Where is a wrong letter in a search question corrected?": "retrieval/spelling.py",
    "Where are phrases such as `first week of March` read as dates?": "memory/date_phrases.py",
    "Where are memories kept that could not be delivered to the database yet?": "memory/outbox.py",
    "Where are secrets masked before something is logged?": "events/redaction.py",
    "Where is the append-only log of events written?": "events/log.py",
    "Where is a file replaced completely or not at all?": "files/atomic_write.py",
    "Where is it decided which paths are protected from changes?": "files/protected_paths.py",
    "Where is a command confined by Landlock?": "process/landlock.py",
    "Where are system calls of a command filtered?": "process/seccomp.py",
    "Where is a provider's API key stored by the set-up?": "settings/provider_keys.py",
    "Where is limited what a project's own settings file may set?": (
        "settings/untrusted_settings.py"
    ),
    "Where is the next model used when one cannot be reached?": "models/model_fallback.py",
    "Where is it known how large the context window of a named model is?": (
        "models/context_windows.py"
    ),
    "Where are the tools of outside MCP servers searched by a request?": "catalog/tool_search.py",
    "Where does a server's HTTP request pass the checks of Host, Origin, token and size?": (
        "server/request_guard.py"
    ),
    "Where is a damaged SQLite database moved aside and its rows saved?": (
        "storage/sqlite_recovery.py"
    ),
}


def files() -> list[str]:
    """Return the paths of all modules."""
    return sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


def mark(answers: list[str]) -> tuple[int, int, list[str]]:
    """Return how many were right at the first guess and with two, and the questions that failed."""
    first = second = 0
    failed = []
    for (question, expected), answer in zip(QUESTIONS.items(), answers, strict=True):
        guesses = [guess.strip() for guess in answer.split(",")][:2]
        first += guesses[0] == expected
        second += expected in guesses
        if guesses[0] != expected:
            failed.append(f"{question} {expected}, not {answer}")
    return first, second, failed


def main() -> None:
    """Print the test, or the marks."""
    if len(sys.argv) > 1:
        lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
        first, second, failed = mark([line for line in lines if line.strip()])
        print("\n".join([*failed, f"{first} at the first guess, {second} with two, of 40"]))
        return
    print("\n".join([*files(), "", *(f"{n}. {q}" for n, q in enumerate(QUESTIONS, 1))]))


if __name__ == "__main__":
    main()

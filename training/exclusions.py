"""What must stay out of the training data: everything the model is measured on.

Names come from the benchmark's own repository list. A package is left out when its name holds
one of them; a vendored copy when a folder on its path has that name; and whatever is left is
compared by content with the benchmark's functions (see `training.assemble`).
"""

from __future__ import annotations

import re

REPOSITORIES = frozenset(
    {
        "abseil",
        "absl",
        "abseil-cpp",
        "aeson",
        "aiohttp",
        "alamofire",
        "axios",
        "axum",
        "bash-it",
        "bats",
        "bats-core",
        "cats",
        "chi",
        "circe",
        "click",
        "cobra",
        "commons-lang",
        "commons-lang3",
        "curl",
        "pycurl",
        "dapper",
        "ecto",
        "exposed",
        "express",
        "fastapi",
        "flask",
        "fmt",
        "fmtlib",
        "gin",
        "gson",
        "guzzle",
        "guzzlehttp",
        "http4s",
        "httpx",
        "jackson",
        "jackson-databind",
        "kotlinx",
        "kotlinx-coroutines",
        "ktor",
        "laravel",
        "illuminate",
        "lazy",
        "libuv",
        "messagepack",
        "messagepack-csharp",
        "mini",
        "model2vec",
        "monolog",
        "newtonsoft",
        "nlohmann",
        "nlohmann-json",
        "nvm",
        "nvim-lspconfig",
        "pandoc",
        "phoenix",
        "plug",
        "pydantic",
        "rack",
        "rails",
        "railties",
        "actionpack",
        "activerecord",
        "activesupport",
        "activemodel",
        "actionview",
        "actionmailer",
        "activejob",
        "activestorage",
        "actioncable",
        "actiontext",
        "actionmailbox",
        "redis",
        "redux",
        "requests",
        "rxswift",
        "semble",
        "serde",
        "sinatra",
        "snapkit",
        "starlette",
        "telescope",
        "tokio",
        "trpc",
        "vapor",
        "vitest",
        "xmonad",
        "zig",
        "zls",
        "zod",
        "zig-clap",
    }
)


def is_benchmark_package(name: str) -> bool:
    """True if a package's name holds the name of a benchmark repository as a word."""
    words = re.split(r"[-_./@+]", name.lower())
    joined = {"-".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, i + 3)}
    return bool((joined | {w.rstrip("0123456789") for w in words}) & REPOSITORIES)


def is_benchmark_path(path: str) -> bool:
    """True if a folder or a file's stem on the path is a benchmark repository's name."""
    parts = path.lower().split("/")
    return any(part in REPOSITORIES for part in parts[:-1])

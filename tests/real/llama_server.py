"""Serve a GGUF file by llama.cpp's own HTTP server, for ``FILE WINDOW``."""

from __future__ import annotations

import importlib
import sys
import threading


def main(path: str, window: int) -> None:
    """Listen on a free port of loopback, print the address, and serve until stdin ends."""
    xllamacpp = importlib.import_module("xllamacpp")

    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    parameters.fit_params = False
    parameters.verbosity = -1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    threading.Thread(target=sys.stdin.read, daemon=True).run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

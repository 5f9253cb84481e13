#!/usr/bin/env python3
"""Serves a model as llama.cpp's own server does, until the process is ended. Needs the package `xllamacpp`.

    python serve_model.py --model smollm2.gguf --alias smollm2-135m --port 8080
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the weights, as GGUF")
    parser.add_argument("--alias", required=True, help="what clients call the model")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--context", type=int, default=4096, help="tokens, shared evenly by all slots")
    parser.add_argument("--slots", type=int, default=2, help="how many replies at once")
    parser.add_argument("--chat-template", type=Path, help="a template instead of the model's own")
    parser.add_argument("--no-prompt-cache", action="store_true", help="compute every prompt from its beginning")
    arguments = parser.parse_args()

    given = xllamacpp.CommonParams()
    given.model.path = arguments.model
    given.model_alias = {arguments.alias}
    given.hostname, given.port = "127.0.0.1", arguments.port
    given.n_ctx, given.n_parallel = arguments.context, arguments.slots
    # Several threads wait for each other at each layer. On a busy machine they are ten times slower than one.
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
    given.n_gpu_layers = 0
    given.use_jinja = True
    given.cache_prompt = not arguments.no_prompt_cache
    if arguments.chat_template:
        given.chat_template = arguments.chat_template.read_text()
    given.ui, given.endpoint_metrics = False, True
    server = xllamacpp.Server(given)
    print(server.listening_address, flush=True)
    # SIGTERM ends the process immediately, because there is no state to save.
    signal.pause()


if __name__ == "__main__":
    main()

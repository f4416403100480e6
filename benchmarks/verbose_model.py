"""The tests' scripted chat model with answers as long as a real model's: it repeats them.

python -m benchmarks.verbose_model [--port N] [--pause SECONDS] [--times N]
"""

from __future__ import annotations

import argparse
import threading
from dataclasses import replace

from tests.support.chat_server import ChatServer, Reply, Request, rules


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between the pieces of a stream")
    parser.add_argument("--times", type=int, default=1, help="repetitions of each answer")
    options = parser.parse_args()

    def respond(request: Request) -> Reply:
        reply = rules(request)
        if reply.tool_calls or "[1]" not in reply.text:
            return reply
        return replace(reply, text=" ".join([reply.text] * options.times), pause=options.pause)

    with ChatServer(respond, port=options.port) as server:
        print(server.base_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()

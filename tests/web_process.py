"""`everthread serve` in a process of its own, on a free port of loopback."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx


@dataclass
class WorkerProcess:
    """A worker, and a client of it."""

    process: subprocess.Popen[str]
    client: httpx.Client
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def new_thread(self) -> str:
        return str(self.client.post("/threads").json()["id"])

    def say(self, thread: str, message_id: str = "m-1", text: str = "Hello.", **more: Any) -> httpx.Response:
        body = {"message": text, "message_id": message_id, **more}
        return self.client.post(f"/threads/{thread}/runs", json=body)


@contextmanager
def start_worker(folder: Path, *options: str, **settings: str) -> Iterator[WorkerProcess]:
    """Start a worker in a folder, and kill it at the end if it still goes on."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("EVERTHREAD_", "OPENAI_"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "everthread", "serve", "--port", "0", *options],
        cwd=folder,
        env={**environment, "PYTHONUTF8": "1", **settings},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = iter(process.stderr)
    reader = threading.Thread(target=lambda: [None for _ in lines])
    try:
        port = int(next(line for line in lines if line.startswith("http://")).split()[0].rpartition(":")[2])
        next(line for line in lines if "startup complete" in line)
        reader.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield WorkerProcess(process, client, port)
    finally:
        process.kill()
        process.wait(timeout=30)
        if reader.ident is not None:
            reader.join()
        process.stderr.close()

"""Processes are forked while a storage is open, at any moment of its work, and use what they inherit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import everthread
from attack.conftest import AttackRow
from attack.scale import PARTS, part_of, tries

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")]

SOURCE = {**os.environ, "PYTHONPATH": str(Path(everthread.__file__).parents[1])}

FORKS = """
import asyncio, json, os, signal, sys, threading, warnings
from everthread import build_graph, open_storage
from everthread.agents import travel
from everthread.errors import StorageError

warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
count, config = int(sys.argv[2]), {"configurable": {"thread_id": "t"}}
storage = open_storage(sys.argv[1], lock_timeout_seconds=20)
graph = build_graph(travel, model="offline", storage=storage)
asyncio.run(graph.ainvoke({"messages": "Hello."}, config))
uses = [
    lambda: storage.store.get(("n",), "0"),
    lambda: storage.store.put(("n",), "of a child", {}),
    lambda: asyncio.run(storage.store.aput(("n",), "of a child", {})),
    lambda: graph.get_state(config),
    lambda: graph.invoke({"messages": "From a child."}, config),
    lambda: asyncio.run(graph.ainvoke({"messages": "From a child."}, config)),
    lambda: storage.locks.hold("t").__enter__(),
    lambda: [*graph.stream({"messages": "From a child."}, config)],
]

def child(number):
    signal.alarm(20)  # whoever waits for ever is killed
    try:
        uses[number % len(uses)]()
    except StorageError as error:
        code = 0 if "forked" in str(error) else 1
    except BaseException:
        code = 2
    else:
        code = 3
    storage.close()
    # By turns as `multiprocessing` ends a child, and as a plain script does.
    os._exit(code) if number % 2 else sys.exit(code)

done = threading.Event()
def write():
    number = 0
    while not done.is_set():
        storage.store.put(("n",), str(number), {"number": number})
        number += 1
    written.append(number)

written, codes = [], []
with storage.locks.hold("held"):
    writer = threading.Thread(target=write)
    writer.start()
    for number in range(count):
        if not (process := os.fork()):
            child(number)
        codes.append(os.waitpid(process, 0)[1])
    done.set()
    writer.join()
assert storage.locks.are_free()
graph.invoke({"messages": "From the parent."}, config)
check = storage.database.connection.execute("PRAGMA integrity_check").fetchone()[0]
there = len(storage.store.search(("n",), limit=10**6))
said = [message.text for message in graph.get_state(config).values["messages"] if message.type == "human"]
print(json.dumps({"codes": codes, "check": check, "lost": written[0] - there, "said": said}))
"""


@pytest.mark.parametrize("part", PARTS)
def test_a_forked_child_is_told_to_open_the_database_again(part: int, tmp_path: Path, attack_row: AttackRow) -> None:
    count = len(part_of(range(tries(8, 200)), part))
    command = [sys.executable, "-c", FORKS, f"sqlite:///{tmp_path}/a.db", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=590, env=SOURCE, check=False)

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    wrong = [code for code in result["codes"] if code]
    attack_row("forked children", count, len(wrong))
    assert wrong == []
    assert (result["check"], result["lost"], result["said"]) == ("ok", 0, ["Hello.", "From the parent."])

"""The store alone: notes of two users in one SQLite file, searched by words and days, from several processes.

python examples/store_alone.py [FILE]      # default: notes.db in the current folder; needs no key
"""

import asyncio
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from everthread import open_storage

NOTES = {
    "ada": {
        "n1": {"text": "Prefers aisle seats.", "date": "2025-03-04", "tags": ["travel"]},
        "n2": {"text": "Moved from Zürich to Lisbon.", "date": "2025-04-01", "tags": ["home"]},
        "n3": {"text": "Allergic to peanuts; carries an injector.", "date": "2025-04-02", "tags": ["health"]},
    },
    "grace": {"n1": {"text": "Prefers window seats.", "date": "2025-03-05", "tags": ["travel"]}},
}


def write(url: str, user: str) -> int:
    """Write the notes of one user; each process opens the file by itself, and writes take turns."""
    with open_storage(url) as storage:
        for key, value in NOTES[user].items():
            storage.store.put(("users", user, "notes"), key, value)
    return len(NOTES[user])


async def ask(url: str) -> None:
    """Search the same file with the store's async methods, which never block the event loop."""
    async with open_storage(url) as storage:
        found = await storage.store.asearch(("users", "ada"), query="peanut allergy")
        print("async: ", [item.value["text"] for item in found])


def main(file: Path) -> None:
    """Write from two processes, then search."""
    url = f"sqlite:///{file}"
    with ProcessPoolExecutor(2) as processes:
        print("wrote: ", sum(processes.map(write, [url] * 2, NOTES)))
    with open_storage(url) as storage:
        store = storage.store
        for query in ("which seats does she prefer?", "zurich", "April 2"):
            found = store.search(("users", "ada"), query=query, limit=2)
            print(f"{query!r}:", [(item.key, item.value["text"]) for item in found])
        travel = store.search(("users",), query="seats", filter={"tags": ["travel"]})
        print("users: ", sorted(item.namespace[1] for item in travel))
    asyncio.run(ask(url))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "notes.db"))

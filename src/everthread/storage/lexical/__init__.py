"""LangGraph's SQLite store with a full-text index: `search(query=...)` ranks by BM25, without embeddings.

A drop-in subclass of `SqliteStore`; see docs/stores.md. What a word is stands in
`memory.text.words`; `texts` says which text of a value counts, `indexing` keeps the index true, `searching` ranks.
"""

from everthread.storage.lexical.stores import LexicalSqliteStore, settle

__all__ = ["LexicalSqliteStore", "settle"]

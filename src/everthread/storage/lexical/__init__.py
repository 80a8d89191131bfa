"""LangGraph's SQLite stores with a full-text index: `search(query=...)` ranks by BM25, without embeddings.

Drop-in subclasses of `SqliteStore` and `AsyncSqliteStore`; see docs/stores.md. `words` and `dates` say
what a word is, `texts` which text of a value counts, `indexing` keeps the index true, `searching` ranks.
"""

from everthread.storage.lexical.stores import AsyncLexicalSqliteStore, LexicalSqliteStore, settle

__all__ = ["AsyncLexicalSqliteStore", "LexicalSqliteStore", "settle"]

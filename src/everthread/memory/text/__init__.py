"""One reading of text, in English first: every rule about what a user's words are and mean starts here.

- `words`: words, stems, stop words, and the words of an index and of a query;
- `sentences`: where sentences end;
- `dates`: the days and periods that a text names;
- `wording`: what a sentence says, as content words with what a negation covers;
- `constraints`: the user's standing rules, such as "don't book before I approve", and how long a wish holds;
- `consent`: yes, no, and anything else.

Pure functions without state; nothing here knows of notes, messages or storage.
"""

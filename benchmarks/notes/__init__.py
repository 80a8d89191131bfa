"""Test notes in eight languages for the guard: families of wordings, split by family into two halves.

`families/*.yaml` has the notes: a file is a kind, with its `label`, and a family has one wording a line for each
language. `{a|b}` in a line stands for either. Every second family of a kind is for tuning, the others for reporting:
rules and weights may be fitted to the first half, and the figures in docs/guard.md are those of the second. Families,
not sentences, are parted, so that no wording of the second half has a paraphrase in the first.

`practice/*.tsv` has further notes by language, kind and text, which are in neither half. `sentences/*.tsv`
has what users say to an assistant, by language, label and text: standing rules, lasting statements, and talk.
"""

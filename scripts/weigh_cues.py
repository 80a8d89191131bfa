"""Fit the weights of the cues of a sentence on sentences of our own, and write them into `rules/cues.yaml`.

A sentence may say whether it is a standing rule, whether it is a lasting statement about the user, or both. Run it
after a change to the cues or to the sentences; a cue that weighs nothing for either can go:

    python scripts/weigh_cues.py tests/unit/memory/text/sentences.jsonl
"""

import json
import re
import sys
from pathlib import Path

from logistic import fitted

import everthread.memory.rules
from everthread.memory.distill.statements import is_hypothetical
from everthread.memory.rules import BUILT_IN
from everthread.memory.text.own_words import is_reported, own_sentences

_FILE = Path(everthread.memory.rules.__file__).with_name("cues.yaml")
_PENALTY = 1.0
_STRICTER = {"rule": 0.3, "lasting": 0.8}
"""What a sentence has to weigh more than an even chance: a false note costs trust, a false rule only tokens."""
_EVERY = "any sentence"


def main(path: str) -> None:
    """Fit and write."""
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    text = _FILE.read_text(encoding="utf-8")
    for of in _STRICTER:
        weights = _weights(rows, of)
        for name, weight in weights.items():
            row = re.compile(rf"(- name: {re.escape(name)}\n(?:(?!    - name).*\n)*?      {of}: )\S+")
            text = row.sub(rf"\g<1>{weight}", text, count=1)
        print(f"{of}: {sum(of in row for row in rows):,} sentences, {sum(map(bool, weights.values()))} weights")
    _FILE.write_text(text, encoding="utf-8")


def _weights(rows: list[dict[str, object]], of: str) -> dict[str, float]:
    cues = [cue for cue in BUILT_IN.pack("cues").sections["cue"] if cue.name != _EVERY]
    matrix, labels = [], []
    for row in rows:
        sentences = [
            one.bare for one in own_sentences(str(row["text"])) if not one.is_question and not is_reported(one)
        ]
        if of not in row or (row[of] and len(sentences) != 1):
            continue
        for bare in sentences:
            if of == "rule" or not is_hypothetical(bare):
                matrix.append([place for place, cue in enumerate(cues) if cue.match(bare)])
                labels.append(bool(row[of]))
    weights, bias = fitted(matrix, labels, len(cues), penalty=_PENALTY)
    found = {cue.name: round(weight, 1) + 0.0 for cue, weight in zip(cues, weights, strict=True)}
    return {_EVERY: round(bias - _STRICTER[of], 1), **found}


if __name__ == "__main__":
    main(sys.argv[1])

"""Constraints of tag schemes against regular expressions of whole spans."""

from __future__ import annotations

import itertools
import re

import pytest
import torch

import torch_multiclass as tm


def spans_are_legal(scheme: str, tags: list[str]) -> bool:
    """Whether a regular expression of whole spans matches; types X and Y."""
    line = "".join(tag.replace("-", "") + " " for tag in tags)
    span = {
        "BIO": lambda t: f"B{t} (I{t} )*",
        "BIOES": lambda t: f"(S{t} |B{t} (I{t} )*E{t} )",
    }
    if scheme in span:
        return re.fullmatch(f"(O |{span[scheme]('X')}|{span[scheme]('Y')})*", line) is not None
    # IOB1: B only right after a span of the same type
    return all(
        tag[0] != "B" or (n > 0 and tags[n - 1] != "O" and tags[n - 1][2:] == tag[2:]) for n, tag in enumerate(tags)
    )


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "IOB1"])
def test_constraints_allow_exactly_the_legal_sequences(scheme):
    prefixes = "BIES" if scheme == "BIOES" else "BI"
    tags = ["O", *(f"{p}-{t}" for t in "XY" for p in prefixes)]
    allowed = tm.tag_constraints(tags, scheme)
    for n in range(1, 5 if scheme != "BIOES" else 4):
        every = torch.tensor(list(itertools.product(range(len(tags)), repeat=n)))
        scores = tm.ChainScores(torch.zeros(n, len(tags)), allowed.transitions, start=allowed.start, end=allowed.end)
        possible = scores.score(every) == 0
        expected = [spans_are_legal(scheme, [tags[y] for y in row]) for row in every.tolist()]
        assert possible.tolist() == expected


def test_bad_tags_are_named():
    with pytest.raises(ValueError, match=r"tags: 'X-PER' is not a BIO tag; accepted are 'O', 'B-\.\.\.', 'I-\.\.\.'"):
        tm.tag_constraints(["O", "X-PER"])
    with pytest.raises(ValueError, match="tags: 'O' is given twice"):
        tm.tag_constraints(["O", "O"])
    with pytest.raises(ValueError, match="scheme: got 'BMES'; accepted are 'BIO', 'IOB1', 'BIOES'"):
        tm.tag_constraints(["O"], "BMES")

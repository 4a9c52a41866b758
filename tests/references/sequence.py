"""The shared tasks' span scorer, read off its published rules one label at a time, over plain lists."""

from __future__ import annotations


def parts(tag):
    """Prefix and type; the type of O is empty."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def chunk_ends(last, last_kind, now, kind):
    """Whether a span that holds the tag ``last`` ends before the tag ``now``."""
    pairs = ["BB", "BO", "BS", "IB", "IO", "IS", "EB", "EE", "EI", "EO", "ES", "SB", "SE", "SI", "SO", "SS"]
    return last + now in pairs or (last != "O" and last_kind != kind)


def chunk_starts(last, last_kind, now, kind):
    """Whether a span starts at the tag ``now``."""
    pairs = ["BB", "IB", "OB", "EB", "SB", "BS", "IS", "OS", "ES", "SS", "OI", "EE", "EI", "OE", "SI", "SE"]
    return last + now in pairs or (now != "O" and last_kind != kind)


def spans(tags):
    """All (start, end, type) of one sentence."""
    found, start = [], None
    last, last_kind = "O", ""
    for i, tag in enumerate([*tags, "O"]):
        now, kind = parts(tag)
        if chunk_ends(last, last_kind, now, kind):
            found.append((start, i, last_kind))
        if chunk_starts(last, last_kind, now, kind):
            start = i
        last, last_kind = now, kind
    return found


def span_counts(predicted, gold):
    """Correct, predicted and gold spans over pairs of sentences."""
    correct = sum(len(set(spans(p)) & set(spans(g))) for p, g in zip(predicted, gold, strict=True))
    return correct, sum(len(spans(p)) for p in predicted), sum(len(spans(g)) for g in gold)

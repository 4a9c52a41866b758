"""Whether a wrong sign somewhere in the package would be noticed.

A random line of arithmetic is changed in a copy (a sign, a product, a comparison, a number, a minimum), and the tests
that concern its file run until one fails: its examples, those of the same name, those of the mirrored folder.
`python -m tests.mutations --count 10 --seed 3` prints a line for each. What survives wants a test, or is the same
program in other words. Each test that failed must pass where nothing is changed, or it says nothing.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SWAPPED = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "+", "**": "*", "<": "<=", "<=": "<", ">": ">=",
           ">=": ">", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "//=": "*="}  # fmt: skip
RIVALS = [("min", "max"), ("amin", "amax"), ("argmin", "argmax"), ("minimum", "maximum"), ("cummin", "cummax"),
          ("clamp_min", "clamp_max")]  # fmt: skip
RIVAL = {one: other for pair in RIVALS for one, other in (pair, pair[::-1])}
# Whose numbers tests of another folder hold to their references.
SHOWN_BY = {
    "ops/boosting": ["solvers/boosting"],
    "ops/online": ["ops/online", "solvers/online"],
    "ops/scans": ["ops/test_scans.py", "ops/test_second_order.py", "ops/test_tree.py", "ops/test_segments.py"],
    "ops/splits": ["ops/splits", "solvers/trees", "solvers/boosting"],
    "functional": ["losses"],
    "checks": ["test_checks.py", "test_refusals.py"],
    "ops/coding.py": ["losses/test_coded.py", "decoders/test_coded.py"],
    "ops/coded.py": ["losses/test_coded.py", "decoders/test_coded.py"],
    "ops/coupling.py": ["decoders/test_coded.py", "heads/test_coded.py"],
    "ops/pairs.py": ["scorers/test_many_classes.py"],
    "ops/ascent.py": ["solvers/svm"],
    "ops/chain/sampling.py": ["scores/test_chain.py"],
    "ops/chain/slack.py": ["losses/test_structured.py"],
    "solvers/cutting_plane.py": ["solvers/test_planes.py"],
    "solvers/objective.py": ["solvers/test_planes.py"],
    "solvers/parametric.py": ["solvers/test_planes.py"],
    "solvers/svm": ["solvers/svm/test_parts.py", "solvers/svm"],
    "ops/flat.py": ["losses/test_flat.py", "losses/test_structured.py"],
}
AT_A_TIME = re.compile(r"_?([A-Z_]*_)?(BLOCK|BUFFER|AT_ONCE|ENTRIES|CHUNK|BYTES|MEMORY)(_[A-Z_]*)?")
CLOCKS = {"seconds", "due", "monotonic", "perf_counter"}
TINY = 1e-6  # what is less is a rounding, and one that is twice as large is as good
ELSEWHERE = ["recipes", "docs", "benchmarks", "integrations", "mutations.py", "hostile"]


class Mutation(NamedTuple):
    """Characters ``start`` to ``end`` of a line of a file, and what stands there instead."""

    file: str
    line: int
    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        old = lines[self.line - 1]
        lines[self.line - 1] = old[: self.start] + self.new + old[self.end :]
        return "".join(lines)

    def __str__(self) -> str:
        lines = [text.splitlines()[self.line - 1].strip() for text in (read(self.file), self.apply(read(self.file)))]
        return f"{self.file}:{self.line}  {lines[0]}\n     -> {lines[1]}"


def read(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def words_in(node: ast.AST) -> Iterator[str]:
    """The names within."""
    for part in ast.walk(node):
        if isinstance(part, (ast.Name, ast.Attribute)):
            yield part.id if isinstance(part, ast.Name) else part.attr


def unseen(node: ast.AST) -> bool:
    """Whether no value shows it: how much is done at a time, where in memory."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.BinOp)):
        return False
    words = set(words_in(node))
    return any(AT_A_TIME.fullmatch(word) for word in words) or bool(words & {"data_ptr", "ctypes"})


def bounded(node: ast.Compare) -> bool:
    """Whether it compares with a time, or a size or a rounding that has a name, which no value is likely to equal."""
    words = [word for side in (node.left, *node.comparators) for word in words_in(side)]
    return any((word.isupper() and len(word) > 1) or word in CLOCKS for word in words)


def factors(node: ast.AST) -> list[ast.AST]:
    """What a product multiplies."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*factors(node.left), *factors(node.right)]
    return [node]


def times_rounding(tree: ast.AST) -> set[ast.AST]:
    """The numbers by which the rounding of a float is multiplied: one more or less of them is as good."""
    products = [factors(node) for node in ast.walk(tree)]
    rounding = [parts for parts in products if any(getattr(part, "attr", "") == "eps" for part in parts)]
    return {part for parts in rounding for part in parts if isinstance(part, ast.Constant)}


def computing(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a file that compute: no annotation, no error's words, no text."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        if field == "args" and getattr(getattr(tree, "func", None), "attr", "") == "linspace":
            value = value[:2]  # a curve drawn of one point more is the same picture
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, (ast.Raise, ast.JoinedStr, ast.Assert)):
                continue
            if not unseen(node):
                yield node
                yield from computing(node)


def mutations(file: str) -> dict[int, list[Mutation]]:
    """What can be changed in each line of arithmetic of a file: a line that has an operator, an order or an extreme."""
    text = read(file)
    tokens = {t.start: t for t in tokenize.generate_tokens(io.StringIO(text).readline)}
    positions = sorted(tokens)
    found: dict[int, list[Mutation]] = {}
    arithmetic = set()

    def change(token: tokenize.TokenInfo, new: str, counts: bool = True) -> None:
        line, start = token.start
        found.setdefault(line, []).append(Mutation(file, line, start, token.end[1], new))
        if counts:
            arithmetic.add(line)

    def column(line: int, offset: int) -> tuple[int, int]:
        """Of the characters of a line, where the syntax tree counts bytes."""
        return line, len(text.splitlines()[line - 1].encode()[:offset].decode())

    def between(after: ast.AST, before: ast.AST) -> Iterator[tokenize.TokenInfo]:
        first, last = column(after.end_lineno, after.end_col_offset), column(before.lineno, before.col_offset)
        for position in positions:
            if first <= position < last and tokens[position].string in SWAPPED:
                yield tokens[position]

    tree = ast.parse(text)
    vague = times_rounding(tree)
    for node in computing(tree):
        if isinstance(node, ast.BinOp):
            for token in between(node.left, node.right):
                change(token, SWAPPED[token.string])
        elif isinstance(node, ast.AugAssign):
            for token in between(node.target, node.value):
                change(token, SWAPPED[token.string])
        elif isinstance(node, ast.Compare) and not bounded(node):
            for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
                for token in between(left, right):
                    change(token, SWAPPED[token.string])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            change(tokens[column(node.lineno, node.col_offset)], "", counts=False)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            if node in vague or 0 < node.value < TINY:
                continue
            new = node.value + 1 if isinstance(node.value, int) else (2 * node.value or 1.0)
            change(tokens[column(node.lineno, node.col_offset)], repr(new), counts=False)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            word = node.id if isinstance(node, ast.Name) else node.attr
            if word in RIVAL:
                token = tokens[column(node.end_lineno, node.end_col_offset - len(word))]
                change(token, RIVAL[word])
        elif isinstance(node, ast.keyword) and node.arg in ("min", "max"):
            change(tokens[column(node.lineno, node.col_offset)], RIVAL[node.arg])
    return {line: changes for line, changes in found.items() if line in arithmetic}


def draw(count: int, seed: int, only: str) -> list[Mutation]:
    """Lines of the whole package, all as likely, and one change of each."""
    files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "torch_multiclass").rglob("*.py"))
    lines = [changes for file in files if only in file for changes in mutations(file).values()]
    r = random.Random(seed)
    return [r.choice(changes) for changes in r.sample(lines, min(count, len(lines)))]


def stages(file: str, everywhere: bool) -> Iterator[list[str]]:
    """Arguments of pytest, what is likeliest to notice first: its examples, tests of its name, those of its folder."""
    inner = Path(file).relative_to("torch_multiclass")
    folder = str(inner.parent)
    named = [p for p in sorted((ROOT / "tests").rglob(f"test_{inner.stem.strip('_')}.py")) if "recipes" not in p.parts]
    near = [p for p in named if str(p.parent.relative_to(ROOT / "tests")) == folder] or named[:2]
    while folder not in SHOWN_BY and not (ROOT / "tests" / folder).is_dir():
        folder = str(Path(folder).parent)
    places = [] if folder == "." else [f"tests/{place}" for place in SHOWN_BY.get(folder, [folder])]
    if folder == "ops":  # without those of the folders within
        places = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "tests/ops").glob("test_*.py"))]
    places = [f"tests/{place}" for place in SHOWN_BY.get(str(inner), [])] + places
    yield [file, *(str(p.relative_to(ROOT)) for p in near), *places, "-m", "not slow"]
    if places:  # among them what torch computes where there is no native library
        yield [*places, "-m", "slow"]
    if everywhere:
        yield ["tests", *(f"--ignore=tests/{place}" for place in ELSEWHERE), "-m", "not slow"]


def failing(scratch: Path, arguments: list[str]) -> str | None:
    """The first test that fails, if one does."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--timeout=120"]
    environment = os.environ | {"PYTHONPATH": str(scratch), "OMP_NUM_THREADS": "1", "CI": "1"}
    done = subprocess.run(
        [*command, *arguments], cwd=scratch, env=environment, capture_output=True, text=True, errors="replace"
    )
    if done.returncode in (0, 5):  # all passed; none was collected
        return None
    words = [line.split(" - ")[0].split(maxsplit=1) for line in done.stdout.splitlines()]
    failed = [w[1] for w in words if len(w) == 2 and w[0] in ("FAILED", "ERROR") and "." in w[1]]
    return failed[0] if failed else f"pytest ended with {done.returncode}"


def verdict(scratch: Path, mutation: Mutation, everywhere: bool) -> str | None:
    """The test that notices."""
    place, text = scratch / mutation.file, read(mutation.file)
    try:
        for cached in (place.parent / "__pycache__").glob(f"{place.stem}.*"):
            cached.unlink()  # of the same size and second as the changed file
        place.write_text(mutation.apply(text), encoding="utf-8")
        return next(
            filter(None, (failing(scratch, arguments) for arguments in stages(mutation.file, everywhere))), None
        )
    finally:
        place.write_text(text, encoding="utf-8")
        for cached in (place.parent / "__pycache__").glob(f"{place.stem}.*"):
            cached.unlink()


def copied(scratch: Path) -> None:
    """What git knows, and the native library."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, scratch / name)
    if (ROOT / "torch_multiclass/_native").is_dir():
        shutil.copytree(ROOT / "torch_multiclass/_native", scratch / "torch_multiclass/_native")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=1, help="the number to begin at, of those that the seed draws")
    parser.add_argument("--only", default="", help="part of a file's name")
    parser.add_argument("--everywhere", action="store_true", help="also all other tests")
    parser.add_argument("--list", action="store_true", help="the changes alone, without running a test")
    asked = parser.parse_args()
    drawn, noticed, survived = draw(asked.count, asked.seed, asked.only), {}, []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        copied(scratch)
        for number, mutation in enumerate(drawn[asked.first - 1 :], asked.first):
            print(f"{number:3d}. {mutation}", flush=True)
            if asked.list:
                continue
            began = time.monotonic()
            by = verdict(scratch, mutation, asked.everywhere)
            print(f"     {f'caught by {by}' if by else 'SURVIVED'} ({time.monotonic() - began:.0f} s)", flush=True)
            if by:
                noticed[mutation] = by
            else:
                survived.append(mutation)
        tests = sorted({by.split("[")[0] for by in noticed.values() if "::" in by})
        wrong = failing(scratch, tests) if tests else None
    if wrong:
        print(f"{wrong} fails where nothing is changed: what it caught says nothing")
    print(f"{len(noticed) + len(survived)} changed, {len(noticed)} caught, {len(survived)} survived")
    sys.exit(bool(survived or wrong))

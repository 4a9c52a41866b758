"""Best-first trees by trying every question, one row at a time, and their pruning by trying every subtree."""

import math
from itertools import combinations, pairwise

TIE = 1e-12


def mixed(counts, kind):
    """``F`` of the weights of the classes."""
    total = sum(counts)
    shares = [c / total for c in counts] if total else []
    if kind == "gini":
        return 1 - sum(p * p for p in shares)
    if kind == "entropy":
        return -sum(p * math.log2(p) for p in shares if p > 0)
    if kind == "misclassification":
        return 1 - max(shares)
    if len(counts) == 2:
        return 2 * math.sqrt(shares[0] * shares[1])
    return sum(math.sqrt(p * (1 - p)) for p in shares)


class Naive:
    """A tree; every question is a function of a row that answers True, False, or None where a value is missing."""

    def __init__(self, x, y, weight=None, kind="gini", weighted=True, look_ahead=1, categorical=(), **limits):
        self.x, self.y = [list(map(float, row)) for row in x], list(map(int, y))
        self.kind, self.look_ahead = kind, look_ahead
        self.weight = [1.0] * len(self.y) if weight is None else list(map(float, weight))
        self.classes, self.categorical, self.weighted = max(self.y) + 1, set(categorical), weighted
        self.min_leaf, self.min_decrease = limits.get("min_leaf", 1), limits.get("min_decrease", 0.0)
        self.max_leaves = limits.get("max_leaves", math.inf)
        self.nodes = [list(range(len(self.y)))]
        self.asked, self.unique = {}, True
        self.splits = []
        self.grow()

    def counts(self, rows):
        counts = [0.0] * self.classes
        for i in rows:
            counts[self.y[i]] += self.weight[i]
        return counts

    def mass(self, rows):
        return sum(self.weight[i] for i in rows)

    def questions(self, rows):
        """(feature, threshold or set, answer), in the order in which equal ones are preferred."""
        kinds = [j for j in range(len(self.x[0])) if j not in self.categorical], sorted(self.categorical)
        for j in kinds[0]:
            known = sorted({self.x[i][j] for i in rows if not math.isnan(self.x[i][j])})
            for a in [(u + v) / 2 for u, v in pairwise(known)] + [math.inf]:
                yield j, a, lambda v, a=a: v <= a
        for j in kinds[1]:
            known = sorted({self.x[i][j] for i in rows if not math.isnan(self.x[i][j])})
            rest = known[1:]
            sets = [{known[0], *chosen} for size in range(len(rest)) for chosen in combinations(rest, size)]
            sets.sort(key=lambda s: sum(2**k for k, v in enumerate(rest) if v in s))
            for among in sets:
                yield j, among, lambda v, among=among: v in among

    def candidates(self, rows):
        """(decrease, feature, threshold, side of the missing, yes, no) of the questions that are allowed."""
        whole, mass = mixed(self.counts(rows), self.kind), self.mass(rows)
        for j, a, answer in self.questions(rows):
            holes = [i for i in rows if math.isnan(self.x[i][j])]
            for side in (True, False) if holes else (None,):
                yes = [i for i in rows if (side if math.isnan(self.x[i][j]) else answer(self.x[i][j]))]
                no = [i for i in rows if i not in set(yes)]
                if not yes or not no:
                    continue
                if self.min_leaf > 1 and min(self.mass(yes), self.mass(no)) < self.min_leaf * (1 - TIE):
                    continue
                parts = sum(self.mass(part) / mass * mixed(self.counts(part), self.kind) for part in (yes, no))
                missing = side if side is not None else 2 * self.mass(yes) >= mass * (1 - TIE)
                yield whole - parts, j, a, missing, yes, no

    def best(self, rows, look_ahead):
        """(rank, decrease, ...) of a node's question; None where it stays a leaf."""
        if sum(c > 0 for c in self.counts(rows)) < 2:
            return None
        share = self.mass(rows) / self.mass(self.nodes[0]) if self.weighted else 1.0
        found = []
        for candidate in self.candidates(rows):
            if candidate[0] * share < self.min_decrease - TIE:
                continue
            rank = candidate[0]
            if look_ahead == 2:
                for part in candidate[4:]:
                    below = self.best(part, 1)
                    rank += self.mass(part) / self.mass(rows) * (below[1] if below else 0.0)
            found.append((rank, *candidate))
        if not found:
            return None
        most = max(c[0] for c in found)
        equal = [c for c in found if c[0] >= most - TIE]
        if len({frozenset((frozenset(c[5]), frozenset(c[6]))) for c in equal}) > 1:
            self.unique = False
        return equal[0]

    def grow(self):
        waiting = {0: self.best(self.nodes[0], self.look_ahead)}
        while len(self.splits) + 1 < self.max_leaves:
            ranks = {}
            for node, found in waiting.items():
                if found is not None:
                    share = self.mass(self.nodes[node]) / self.mass(self.nodes[0]) if self.weighted else 1.0
                    ranks[node] = found[0] * share
            if not ranks:
                return
            most = max(ranks.values())
            node = min(n for n, rank in ranks.items() if rank >= most - TIE)
            _, decrease, feature, threshold, missing, yes, no = waiting.pop(node)
            self.asked[node] = len(self.nodes), len(self.nodes) + 1
            self.splits.append((node, feature, threshold, decrease, missing))
            for part in (yes, no):
                waiting[len(self.nodes)] = self.best(part, self.look_ahead)
                self.nodes.append(part)

    # ------------------------------------------------------------------ pruning
    def path(self, kind=None):
        """[(strength, leaves)]: at every strength the smallest subtree of the least ``cost + strength |T|``."""
        kind = kind or self.kind
        cost = [self.mass(rows) * mixed(self.counts(rows), kind) for rows in self.nodes]

        def options(node):
            """{leaves: least cost} of the subtrees below a node."""
            found = {1: cost[node]}
            if node in self.asked:
                left, right = map(options, self.asked[node])
                for a, u in left.items():
                    for b, v in right.items():
                        found[a + b] = min(found.get(a + b, math.inf), u + v)
            return found

        table = options(0)
        made, strength = [], 0.0
        while True:
            least = min(c + strength * n for n, c in table.items())
            size = min(n for n, c in table.items() if c + strength * n <= least + 1e-9)
            made.append((strength, size))
            steps = [((table[n] - table[size]) / (size - n), n) for n in table if n < size]
            if not steps:
                return made
            strength = min(steps)[0]

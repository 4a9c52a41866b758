"""Costs between labels."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from torch_multiclass import costs


@given(st.integers(1, 9), st.integers(0, 2**31))
def test_graph_is_scipys_shortest_path(size, seed):
    from scipy.sparse.csgraph import shortest_path

    generator = torch.Generator().manual_seed(seed)
    lengths = torch.rand(size, size, generator=generator)
    lengths = lengths * (torch.rand(size, size, generator=generator) < 0.5)
    for node in range(size):  # a ring keeps it connected
        lengths[node, (node + 1) % size] = 0.9
    lengths.fill_diagonal_(0)
    expected = torch.tensor(shortest_path(lengths.numpy()))
    torch.testing.assert_close(costs.graph(lengths).matrix.double(), expected, rtol=1e-6, atol=1e-6)


@given(st.integers(2, 12), st.integers(0, 2**31))
def test_hierarchy_is_the_shortest_path_in_the_tree(nodes, seed):
    generator = torch.Generator().manual_seed(seed)
    parents = [-1] + [int(torch.randint(node, (1,), generator=generator)) for node in range(1, nodes)]
    edges = torch.zeros(nodes, nodes)
    for node, parent in enumerate(parents):
        if parent >= 0:
            edges[node, parent] = edges[parent, node] = 1
    leaves = [node for node in range(nodes) if node not in parents]
    matrix = costs.hierarchy(parents).matrix
    assert torch.equal(matrix, costs.graph(edges).matrix[leaves][:, leaves])
    assert torch.equal(matrix, matrix.T)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: costs.hierarchy([0, 1]), r"parents: has 0 roots"),
        (lambda: costs.hierarchy([-1, -1]), r"parents: has 2 roots"),
        (lambda: costs.hierarchy([-1, 7]), r"parents: node 1 has parent 7; accepted are -1 and 0..1"),
        (lambda: costs.hierarchy([-1, 2, 1]), r"parents: node 1 is its own ancestor"),
        (lambda: costs.graph([[0, 0], [0, 0]]), r"adjacency: no path joins classes 0 and 1"),
        (lambda: costs.graph([[0, -1], [1, 0]]), r"adjacency: has a negative"),
        (lambda: costs.graph([[0, 1]]), r"adjacency: got shape \(1, 2\)"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_costs_broadcast_over_positions():
    """One matrix for each of two sequences, and labels (2, 3)."""
    matrices = torch.rand(2, 4, 4) * (1 - torch.eye(4))
    y = torch.randint(4, (2, 3))
    rows = costs.Matrix(matrices).rows(y, 4, torch.float32)
    for b in range(2):
        for t in range(3):
            assert torch.equal(rows[b, t], matrices[b, y[b, t]])
    assert repr(costs.Matrix(matrices)) == "Matrix(2 x 4 x 4)"
    assert repr(costs.Hamming(normalize=True)) == "Hamming(normalize=True)"
    assert "2" in repr(costs.as_cost([[0, 1], [1, 0]]))


def test_parents_may_be_a_tensor_or_an_array():
    parents = [3, 3, 4, 4, -1]
    expected = costs.hierarchy(parents).matrix
    assert torch.equal(costs.hierarchy(torch.tensor(parents)).matrix, expected)
    assert torch.equal(costs.hierarchy(torch.tensor(parents).numpy()).matrix, expected)


# ---------------------------------------------------------------------- labels and entries of any kind

MATRIX = [[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [4.0, 3.0, 0.0]]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]
COSTS = [costs.Matrix(MATRIX), costs.ZeroOne(), costs.Hamming(), costs.Matrix(torch.tensor([MATRIX] * 2))]
ids = ["matrix", "zero_one", "hamming", "one each"]


@pytest.mark.parametrize("integer", INTEGERS, ids=str)
@pytest.mark.parametrize("cost", COSTS, ids=ids)
def test_labels_of_any_integer_dtype(cost, integer):
    y = torch.tensor([2, 1])
    assert torch.equal(cost(y.to(integer), 3), cost(y, 3))
    assert torch.equal(cost.rows(y.to(integer), 3, torch.float32), cost(y, 3))


@pytest.mark.parametrize("cost", COSTS, ids=ids)
@pytest.mark.parametrize("label", [-1, -3, 3, 255, -100, 2**40])
def test_a_label_outside_is_named(cost, label):
    with pytest.raises(ValueError, match=rf"^target: label {label} is outside 0\.\.2 \(3 classes\)"):
        cost(torch.tensor([0, label]), 3)


@pytest.mark.parametrize("cost", [COSTS[0], COSTS[3]], ids=["matrix", "one each"])
@pytest.mark.parametrize("label", [-1, 3])
def test_rows_never_reads_another_row(cost, label):
    with pytest.raises(ValueError, match=rf"^target: label {label} is outside 0\.\.2"):
        cost.rows(torch.tensor([0, label]), 3, torch.float32)


@pytest.mark.parametrize("cost", COSTS, ids=ids)
@pytest.mark.parametrize("call", ["forward", "rows"])
@pytest.mark.parametrize(
    ("target", "num_classes", "dtype", "error", "argument"),
    [
        (torch.tensor([0.0, 1.0]), 3, torch.float32, TypeError, "target"),
        (torch.tensor([True, False]), 3, torch.float32, TypeError, "target"),
        (torch.tensor([0, 1]) + 0j, 3, torch.float32, TypeError, "target"),
        (torch.tensor([0, 1]).to_sparse(), 3, torch.float32, TypeError, "target"),
        ([0, 1], 3, torch.float32, TypeError, "target"),
        (None, 3, torch.float32, TypeError, "target"),
        (torch.tensor([0, 1]), 0, torch.float32, ValueError, "num_classes"),
        (torch.tensor([0, 1]), 2.0, torch.float32, ValueError, "num_classes"),
        (torch.tensor([0, 1]), 10**400, torch.float32, ValueError, "num_classes"),
        (torch.tensor([0, 1]), 3, torch.int64, TypeError, "dtype"),
        (torch.tensor([0, 1]), 3, torch.float8_e4m3fn, TypeError, "dtype"),
        (torch.tensor([0, 1]), 3, "float32", TypeError, "dtype"),
    ],
)
def test_what_is_asked_of_a_cost_is_checked(cost, call, target, num_classes, dtype, error, argument):
    with pytest.raises(error, match=rf"^{argument}: .*; accepted "):
        getattr(cost, call)(target, num_classes, dtype)


@pytest.mark.parametrize("call", ["forward", "rows"])
def test_matrices_that_do_not_fit_are_named(call):
    y = torch.tensor([0, 1])
    for cost, target, num_classes, word in [
        (COSTS[0], y, 4, "is 3 x 3, but the scores have 4 classes"),
        (COSTS[3], torch.tensor([0]), 3, "one matrix for each of"),
        (COSTS[3], torch.tensor(0), 3, "one matrix for each of"),
        (COSTS[0], y.to("meta"), 3, "is on cpu, but target is on meta"),
    ]:
        with pytest.raises(ValueError, match=rf"^cost: .*{word}.*; accepted "):
            getattr(cost, call)(target, num_classes, torch.float32)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.int32, np.uint64, np.float16, np.longdouble, ">f8"])
def test_a_matrix_of_any_real_dtype(kind):
    array = np.array(MATRIX).astype(kind)
    for entries in (array, array[::-1, ::-1][::-1, ::-1], array.tolist(), [list(row) for row in array]):
        rows = costs.Matrix(entries)(torch.tensor([0, 1, 2]), 3)
        assert rows.tolist() == MATRIX
    if kind not in (np.longdouble, ">f8"):
        assert costs.Matrix(torch.from_numpy(array))(torch.tensor([0, 1, 2]), 3).tolist() == MATRIX


@pytest.mark.parametrize(
    "given",
    [torch.zeros(2, 2, dtype=torch.complex64), torch.zeros(2, 2).to(torch.float8_e4m3fn), torch.zeros(2, 2).to_sparse(),
     torch.zeros(0, 0), torch.zeros(2, 0, 0), torch.zeros(()), [], [[]], [[0, 10**400], [1, 0]], [[0, "1"], [1, 0]],
     {0: [0]}, b"ab", 3.0, None, np.array([["a", "b"], ["c", "d"]]), np.zeros((2, 2), "M8[s]")],
    ids=str,
)  # fmt: skip
def test_what_is_no_matrix_is_named(given):
    with pytest.raises((TypeError, ValueError), match=r"^cost: .*; accepted "):
        costs.Matrix(given)


def test_graphs_and_trees_need_values():
    with pytest.raises(ValueError, match=r"^adjacency: is on meta and has no values; accepted "):
        costs.graph(torch.zeros(2, 2, device="meta"))
    with pytest.raises(ValueError, match=r"^parents: is on meta and has no values; accepted "):
        costs.hierarchy(torch.zeros(2, dtype=torch.long, device="meta"))


def test_normalize_is_true_or_false():
    for make in (costs.Hamming, lambda normalize: costs.Matrix(MATRIX, normalize=normalize)):
        with pytest.raises(TypeError, match=r"^normalize: got 'no'; accepted are True and False"):
            make(normalize="no")


def test_a_gradient_passes_through_a_matrix():
    matrix = torch.tensor(MATRIX, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([2, 0, 2])
    grad = torch.autograd.grad(costs.Matrix(matrix).rows(y, 3, torch.float64).sum(), matrix)[0]
    assert grad.sum(1).tolist() == [3, 0, 6]


class Own(costs.Cost):
    """What a function of labels, their number and a dtype gives."""

    def __init__(self, rows):
        super().__init__()
        self.made = rows

    def rows(self, target, num_classes, dtype):
        return self.made(torch.arange(num_classes) != target.unsqueeze(-1)).to(dtype)


X, Y = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3
CHAIN, TAGS = tm.ChainScores(X.view(3, 4, 3), X[:3]), Y.view(3, 4)
ENTRIES = {
    "itself": lambda cost: cost(Y, num_classes=3),
    "Crammer and Singer": lambda cost: tm.CrammerSingerLoss(cost=cost)(X, Y),
    "Weston and Watkins": lambda cost: tm.WestonWatkinsLoss(cost=cost)(X, Y),
    "M3N": lambda cost: tm.M3NLoss(cost=cost)(CHAIN, TAGS),
    "SVMStruct": lambda cost: tm.SVMStructLoss(cost=cost)(CHAIN, TAGS),
    "CRF": lambda cost: tm.CRFLoss(cost=cost)(CHAIN, TAGS.where(TAGS > 0, -100)),
    "decoder": lambda cost: tm.ExpectedCostDecoder(cost)(X),
    "DualSVM": lambda cost: tm.solvers.DualSVM(cost=cost).fit(X, Y),
    "FrankWolfe": lambda cost: tm.solvers.FrankWolfe(cost=cost).fit(X, Y),
    "CuttingPlane": lambda cost: tm.solvers.CuttingPlane(cost=cost, scorer=tm.LinearScorer(3, 3)).fit(X, Y),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda wrong: wrong * torch.nan, "has an entry that is not finite; accepted are finite entries >= 0"),
        (lambda wrong: -2 * wrong, "has a negative entry, -2"),
        (lambda wrong: 1 + wrong.long(), "has 1 on the diagonal; accepted is 0"),
        (lambda wrong: wrong[..., 0], r"gives shape \(.*\); accepted is \(.*, 3\), what each label costs"),
    ],
    ids=["nan", "negative", "diagonal", "shape"],
)
def test_a_cost_of_ones_own_is_checked_as_a_matrix_is(entry, rows, message):
    with pytest.raises(ValueError, match=f"cost: Own.rows {message}"):
        ENTRIES[entry](Own(rows))
    ENTRIES[entry](Own(lambda wrong: 2 * wrong))


def test_a_cost_of_ones_own_is_not_checked_where_nothing_is():
    negative = Own(lambda wrong: -2 * wrong)
    expected = (X - 2 * (torch.arange(3) != Y[:, None])).amax(1) - X.gather(1, Y[:, None])[:, 0]
    loss = tm.M3NLoss(cost=negative, reduction="none", validate_args=False)
    torch.testing.assert_close(loss(X, Y), expected)
    captured = torch.compile(tm.M3NLoss(cost=negative, reduction="none"), backend="eager", fullgraph=True)
    torch.testing.assert_close(captured(X, Y), expected)


def test_a_zero_one_cost_with_rows_of_its_own_is_read():
    """By the machine too."""

    class Doubled(costs.ZeroOne):
        def rows(self, target, num_classes, dtype):
            return 2 * super().rows(target, num_classes, dtype)

    found, expected = (tm.solvers.DualSVM(cost=cost, tol=1e-7).fit(X, Y).report.primal for cost in (
        Doubled(), 2 * (1 - torch.eye(3))))  # fmt: skip
    assert found == pytest.approx(expected, rel=1e-6)

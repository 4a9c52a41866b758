"""Codes too large to be looked at at once: some rows and columns at a time, and none at all where the code is known."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.references.drawn import ternary
from torch_multiclass import codes
from torch_multiclass.codes.checks import as_known, equal_rows
from torch_multiclass.codes.words import word_keys


def dense_products(code):
    rows = code.double()
    return rows @ rows.T, rows.abs() @ rows.abs().T


@given(k=st.integers(2, 9), columns=st.integers(3, 12), seed=st.integers(0, 10**6))
def test_properties_do_not_depend_on_the_blocks(k, columns, seed):
    code = ternary(k, columns, seed)
    whole = codes.row_distances(code), codes.min_row_distance(code), codes.correctable(code), word_keys(code)
    torch.testing.assert_close(whole[0], ((code.shape[1] - dense_products(code)[0]) / 2).float())
    with pytest.MonkeyPatch.context() as patch:
        for module in ("products", "checks", "words"):
            patch.setattr(f"torch_multiclass.codes.{module}._BLOCK", 2 * k)
        blocks = codes.row_distances(code), codes.min_row_distance(code), codes.correctable(code), word_keys(code)
        assert torch.equal(codes.as_code(code), code)
    for one, other in zip(whole, blocks, strict=True):
        assert one == other if isinstance(one, float) else torch.equal(one, other)


def test_the_first_equal_rows_are_named():
    code = torch.tensor([[1, 0], [0, 1], [1, 1], [0, 1], [1, 0], [1, 0]], dtype=torch.int8)
    assert equal_rows(code) == (0, 4)
    assert equal_rows(code[:3]) is None
    assert equal_rows(code[1:]) == (0, 2)
    assert equal_rows(torch.stack([code[0], -code[0]])) is None


@pytest.mark.parametrize("known", [codes.OneVsOne(64), codes.OneVsAll(64), codes.OneVsOne(3), codes.OneVsAll(5)])
def test_known_codes_answer_without_their_matrix(known):
    matrix = known.written()
    assert torch.equal(matrix, codes.by_name(known.name, known.num_classes))
    assert matrix.shape == known.shape
    product, both = dense_products(matrix)
    own, other, asked = known.products
    off = ~torch.eye(len(matrix), dtype=torch.bool)
    assert bool((product[off] == other).all())
    assert bool((product.diagonal() == own).all())
    assert bool((both[off] == asked).all())
    for code in (known, matrix):
        torch.testing.assert_close(codes.row_distances(code), ((matrix.shape[1] - product) / 2).float())
        assert codes.min_row_distance(code) == (matrix.shape[1] - other) / 2
        assert torch.equal(codes.correctable(code), codes.correctable(matrix))
        assert torch.equal(codes.check(code), matrix)
    if len(matrix) >= 64:
        assert as_known(matrix).name == known.name
        assert as_known(matrix.flip(0)) is None
    assert not known.equals(-matrix)
    assert not known.equals(matrix[:, 1:])


def test_a_thousand_classes_are_named_as_such():
    code = codes.one_vs_one(300)
    assert codes.name_of(code) == "one_vs_one"
    assert codes.name_of(codes.one_vs_all(300)) == "one_vs_all"
    code[7, 9] = -code[7, 9] if code[7, 9] else 1
    assert codes.name_of(code) is None

"""Tests that ask for ``computed_by`` run twice: with the native library and without."""

from tests.ops.splits.conftest import computed_by  # noqa: F401

"""Every test of online learners runs twice: by the native library, where there is one, and by NumPy."""

from tests.ops.chain.conftest import computed_by, pytest_generate_tests

__all__ = ["computed_by", "pytest_generate_tests"]

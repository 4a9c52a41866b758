"""Every test of chains runs twice: by the native library, where there is one, and by torch alone.

The second of the two is `slow`, so that ``make quick`` runs one of them.
"""

import pytest

from torch_multiclass.ops import _native


def pytest_generate_tests(metafunc):
    if "computed_by" in metafunc.fixturenames and not hasattr(metafunc.module, "computed_by"):
        of_torch = {"spy", "by_torch"} & set(metafunc.fixturenames)
        again = "torch" if _native.library() is None else pytest.param("torch", marks=pytest.mark.slow)
        metafunc.parametrize("computed_by", ["torch"] if of_torch else ["library", again], indirect=True)


@pytest.fixture(autouse=True)
def computed_by(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(_native, "library", lambda: None)
    elif _native.library() is None:
        pytest.skip(_native.backends()["native"])
    return request.param


@pytest.fixture
def by_torch(computed_by):
    """Asked for by tests of what torch does inside."""

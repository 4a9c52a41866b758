"""Every test of splits that asks for ``computed_by`` runs twice: with the native library and without."""

import pytest

from torch_multiclass.ops import _native


@pytest.fixture(params=["library", "numpy"])
def computed_by(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(_native, "library", lambda: None)
    elif _native.library() is None:
        pytest.skip(_native.backends()["native"])
    return request.param

"""Every test of boosting runs with the native library and without."""

import pytest

from torch_multiclass.ops import _native


@pytest.fixture(autouse=True, params=["native", "torch"])
def backend(request, monkeypatch):
    """Who computes."""
    if request.param == "torch":
        monkeypatch.setattr(_native, "library", lambda: None)
    elif _native.library() is None:
        pytest.skip(_native.backends()["native"])
    return request.param

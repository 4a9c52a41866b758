import pytest


@pytest.fixture
def axes():
    """Axes that no window shows."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    return Figure().subplots()

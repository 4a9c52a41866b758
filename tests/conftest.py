"""Options of the whole suite: where it runs and in which precision."""

import os
import signal
import warnings

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests import fewer

settings.register_profile(
    "lean",
    max_examples=40,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("thorough", parent=settings.get_profile("lean"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "lean"))


def pytest_addoption(parser):
    group = parser.getgroup("torch_multiclass")
    group.addoption("--device", default="cpu", help="device of the tensors in the tests: cpu, cuda, cuda:1 ...")
    group.addoption("--exhaustive", action="store_true", help="what is another case of the same too, for minutes more")
    group.addoption("--dtype", default="float32", choices=["float32", "float64"], help="dtype of the value tests")


GRAPHS = ("compile", "export", "captured", "one_graph")
"""What the names of tests have in common that capture a graph, which takes seconds whatever it is of."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if any(word in item.name for word in GRAPHS):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.no_cover)  # coverage would follow the tracer of torch, twice as slow
    for item in fewer.beyond(items, fewer.CASES.get):
        item.add_marker(pytest.mark.exhaustive)
    left = [] if config.getoption("--exhaustive") else [item for item in items if item.get_closest_marker("exhaustive")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    for item in fewer.unmeasured(items):
        item.add_marker(pytest.mark.no_cover)


@pytest.fixture(scope="session")
def device(request):
    device = torch.device(request.config.getoption("--device"))
    if device.type == "cuda" and not torch.cuda.is_available():
        pytest.skip("--device cuda was asked for, and there is none")
    return device


@pytest.fixture(scope="session")
def dtype(request):
    return getattr(torch, request.config.getoption("--dtype"))


@pytest.fixture(autouse=True)
def _fixed_seed_and_threads():
    """Tests draw from torch's global generator; one thread keeps them quick on a busy machine."""
    torch.manual_seed(0)
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _interrupts():
    """Ctrl-C raises, also where a shell runs the tests in the background, with SIGINT ignored, and after recipes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


COMPILES = (2, 13)
"""The first torch whose `torch.compile` and `torch.export` are tested; before it, what calls them is skipped."""


@pytest.fixture(autouse=True)
def _old_compilers(monkeypatch):
    if tuple(map(int, torch.__version__.split(".")[:2])) < COMPILES:

        def skip(*_, **__):
            pytest.skip(f"torch {torch.__version__} compiles and exports less; tested from {COMPILES} on")

        monkeypatch.setattr(torch, "compile", skip)
        monkeypatch.setattr(torch.export, "export", skip)


@pytest.fixture(autouse=True)
def _compile_noise():
    """Compilers of the backends warn about themselves; what the library warns about stays an error."""
    with warnings.catch_warnings():
        for module in (r"torch\._inductor.*", r"torch\._dynamo.*", r"torch\._functorch.*", r"torch\.jit.*"):
            warnings.filterwarnings("ignore", module=module)
        yield

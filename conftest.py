"""What can be collected only where its extra is installed."""

from importlib.util import find_spec

collect_ignore = []
if find_spec("lightning") is None:
    collect_ignore += [
        "torch_multiclass/integrations/duality_gap.py",
        "torch_multiclass/integrations/network.py",
        "tests/integrations/test_duality_gap.py",
        "tests/integrations/test_network.py",
        "tests/integrations/test_travel.py",
        "tests/recipes",
    ]
if find_spec("transformers") is None:
    collect_ignore.append("torch_multiclass/integrations/huggingface.py")


def pytest_report_header() -> list[str]:
    """Say what is left out."""
    return [f"left out for want of their extras: {', '.join(collect_ignore)}"] if collect_ignore else []

"""Which changes are tried: those that a value can show."""

import pytest

from tests import mutations


def tried(monkeypatch, text):
    monkeypatch.setattr(mutations, "read", lambda file: text)
    return {change.apply(text) for changes in mutations.mutations("a.py").values() for change in changes}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b + c", {"a = b - c"}),
        ("a = -b * 2", {"a = b * 2", "a = -b / 2", "a = -b * 3"}),
        ("if a < b: pass", {"if a <= b: pass"}),
        ("a = b.amax(1) - 1", {"a = b.amin(1) - 1", "a = b.amax(2) - 1", "a = b.amax(1) + 1", "a = b.amax(1) - 2"}),
        ("if a.size < MANY: pass", set()),
        ("if a > b + _ROUNDING * c: pass", {"if a > b - _ROUNDING * c: pass", "if a > b + _ROUNDING / c: pass"}),
        ("step = max(1, _BLOCK // n)", set()),
        ("rows = AT_ONCE // len(a)", set()),
        ("first = -(memory.ctypes.data // 8) % 8", set()),
        ("at = a.data_ptr() + 8 * n", set()),
        ("raise ValueError(a + b)", set()),
        (
            "if time.monotonic() - begun > 1: pass",
            {"if time.monotonic() + begun > 1: pass", "if time.monotonic() - begun > 2: pass"},
        ),
        ("a = b - 1e-12", {"a = b + 1e-12"}),
        ("a = 4 * n * torch.finfo(b).eps", {"a = 4 / n * torch.finfo(b).eps", "a = 4 * n / torch.finfo(b).eps"}),
    ],
)
def test_changes_of_a_line(monkeypatch, text, expected):
    assert tried(monkeypatch, text) == expected

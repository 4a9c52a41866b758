"""The one table: what is kept, what is replaced, and what a ratio says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import summary
from benchmarks.scaling import exponent
from benchmarks.timing import Row, Timing

ROOT = Path(summary.__file__).parents[1]


def line(topic="chains", name="a step", ours=(2.0, 1.0, 3.0), theirs=(8.0,), alone=(4.0,)):
    return summary.Line(topic, name, list(ours), "a peer", list(theirs), 3.0, 1.5, list(alone), list(theirs))


def test_ratios_are_of_medians_and_each_run_has_its_own_peer():
    given = summary.Line("t", "n", [2.0, 1.0, 90.0], "peer", [8.0, 8.0, 1.0], None, None, [4.0], [6.0])
    assert summary.faster(given.ours, given.theirs) == 4
    assert summary.faster(given.alone, given.alone_theirs) == 1.5
    assert summary.faster([], [1.0]) is None


@pytest.mark.parametrize(("ratio", "shown"), [(None, ""), (0.5, "0.50×"), (2.61, "2.6×"), (39.4, "39×")])
def test_a_ratio_is_shown_with_the_digits_that_it_has(ratio, shown):
    assert summary.times(ratio) == shown


@pytest.mark.parametrize(
    ("ratio", "said"), [(None, ""), (0.35, "2.9× slower"), (1.0, "1.00× faster"), (39.4, "39× faster")]
)
def test_the_readme_says_which_is_the_faster(ratio, said):
    assert summary.in_words(ratio) == said


def test_the_table_has_every_line_and_the_machine():
    text = summary.markdown([line(), line(name="another", alone=(), ours=(0.0005,))], "a processor")
    assert "a processor" in text
    row = next(row for row in text.splitlines() if row.startswith("| a step"))
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells == ["a step", "2000", "0.50–1.50", "4000", "a peer", "8000", "", "4.0×", "2.0×", "≥ 3×", "1.5"]
    assert "0.5 " in next(row for row in text.splitlines() if row.startswith("| another"))


def test_saved_figures_come_back(tmp_path):
    summary.save(tmp_path, [line(), line(topic="svm")], "a processor")
    found = summary.saved(tmp_path)
    assert [summary.Line(**one) for one in found["lines"]] == [line(), line(topic="svm")]
    assert "a processor" in (tmp_path / "cpu.md").read_text()
    assert not list(tmp_path.glob("*.part"))


def test_a_benchmark_that_runs_again_replaces_its_lines_only(tmp_path, monkeypatch):
    summary.save(tmp_path, [line(topic="losses", name="old"), line(topic="chains", name="old")], "a processor")
    monkeypatch.setattr(summary, "FOLDER", tmp_path)
    monkeypatch.setattr(summary, "topics", lambda: ["chains", "losses"])
    monkeypatch.setattr(summary, "lines", lambda topic, repeats: [line(topic=topic, name="new")])
    summary.main(["--only", "chains"])
    assert [(one["topic"], one["name"]) for one in summary.saved(tmp_path)["lines"]] == [
        ("chains", "new"),
        ("losses", "old"),
    ]


def test_the_readme_is_written_between_its_marks(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"before\n{summary.BEGIN}\nold\n{summary.END}\nafter\n")
    summary.write_readme([line(name="chain (32, 32, 17), train"), line(), line(theirs=())], page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "| chain (32, 32, 17), train | a peer | 4.0× faster" in text
    assert not [word for word in ("old", "a step") if word in text]
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="marks"):
        summary.write_readme([line()], page)
    assert page.read_text() == "no marks"


def test_the_readme_on_record_is_made_from_the_figures_on_record(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(summary.README.read_text())
    summary.write_readme([summary.Line(**one) for one in summary.saved(summary.FOLDER)["lines"]], page)
    assert page.read_text() == summary.README.read_text()


def test_rows_become_json_whatever_they_are_given_as(monkeypatch):
    class Module:
        @staticmethod
        def rows(repeats):
            yield Row("one", Timing([1.0, 2.0]), "peer", 3.0, asked=2.0)
            yield ("two", 1.0)

    monkeypatch.setattr(summary.importlib, "import_module", lambda name: Module)
    monkeypatch.setattr(summary.torch, "set_num_threads", lambda number: None)
    found = list(summary.measure("anything", 3))
    assert json.loads(json.dumps(found)) == found
    assert [(row["name"], row["ours"], row["theirs"]) for row in found] == [
        ("one", [1.0, 2.0], [3.0]),
        ("two", [1.0], []),
    ]


def test_an_unknown_topic_is_named():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.summary", "--only", "speed"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 2
    assert "'speed'" in done.stderr


def test_the_exponent_of_a_power_law():
    sizes = [1, 2, 4, 8, 16, 32]
    assert exponent(sizes, [3.0 * size**1.5 for size in sizes]) == pytest.approx(1.5)

"""The help of recipes, which needs no import."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from recipes import early, start, usage

CHECKOUT = Path(__file__).parents[2]
HEAVY = "{one for one in ('torch', 'numpy', 'lightning', 'jsonargparse', 'matplotlib') if one in sys.modules}"


def ran(recipe, *args):
    """What a recipe prints when it is run by its name, and which of the slow packages it imported."""
    script = (
        "import runpy, sys\n"
        f"sys.argv = ['x', *{args!r}]\n"
        f"try:\n    runpy.run_module('recipes.{recipe}', run_name='__main__', alter_sys=True)\n"
        f"except SystemExit:\n    pass\nprint({HEAVY})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=True
    )  # fmt: skip
    text, _, imported = done.stdout.rstrip("\n").rpartition("\n")
    return text, imported


@pytest.mark.parametrize("recipe", [*start.RECIPES, "results", "results_tag"])
def test_help_imports_nothing_slow(recipe):
    text, imported = ran(recipe, "--help")
    assert text.startswith(f"usage: python -m recipes.{recipe}")
    assert imported == "set()"


@pytest.mark.parametrize("recipe", [name for name in start.RECIPES if name not in ("report", "demo")])
def test_the_help_of_a_command_imports_nothing_slow(recipe):
    command = early.FUNCTIONS.get(recipe, early.COMMANDS)[0]
    text, imported = ran(recipe, command, "--help")
    assert text.startswith(f"usage: python -m recipes.{recipe} {command} [--OPTION VALUE ...]")
    assert imported == "set()"
    assert max(map(len, text.splitlines())) <= 80


def test_the_help_of_a_configured_recipe_imports_nothing_slow():
    text, imported = ran("classify", "fit", "--data", "Npz", "-h")
    assert "--data.path" in text
    assert imported == "set()"


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["svm", "boost", "ocr"])
def test_every_argument_of_a_function_is_listed(recipe):
    module = pytest.importorskip(f"recipes.{recipe}")
    for command in early.FUNCTIONS[recipe]:
        text = usage.text(recipe, [command, "--help"])
        for name, one in inspect.signature(getattr(module, command)).parameters.items():
            place = text.index(f"  --{name}")
            told = " ".join(text[place:].split("\n  --", 1)[0].split())
            assert len(told) > len(name) + 15, f"{command} {name} says nothing"
            if isinstance(one.default, (int, float, str)):
                shown = str(one.default).lower() if isinstance(one.default, bool) else str(one.default)
                assert told.endswith(f"default: {shown}") or "by default" in told


def test_the_classes_of_an_option_are_listed():
    text = " ".join(usage.text("classify", ["fit", "--help"]).split())
    assert "--model.head one of ContinuousCodeHead, ECOCHead, MulticlassHead, OneVsAllHead, OneVsOneHead, or" in text
    tagger = " ".join(usage.text("tag", ["fit", "--help"]).split())
    assert "--model.loss one of CRFLoss, M3NLoss, SVMStructLoss, StructuredPerceptronLoss, or" in tagger
    assert "--model.learning_rate a number: the peak; by default 3e-3" in text
    assert "--trainer.max_epochs a whole number:" in text


def test_the_help_of_a_class_is_the_parsers():
    assert not usage.asked(["fit", "--model.head.help", "MulticlassHead"])
    assert usage.asked(["fit", "-h"])


@pytest.mark.parametrize("recipe", ["svm", "boost", "ocr"])
def test_recipes_without_lightning_do_not_import_it(recipe):
    script = f"import sys, recipes.{recipe}\nprint('lightning' in sys.modules, 'matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]

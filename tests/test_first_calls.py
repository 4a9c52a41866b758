"""The first call of anything is a call like others: it does not import torch's compiler, which takes a second."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CALLS = {
    "crf": "tm.CRFLoss()(scores, tags).backward()",
    "m3n": "tm.M3NLoss()(scores, tags).backward()",
    "svmstruct": "tm.SVMStructLoss()(scores, tags).backward(); tm.SVMStructLoss(exact=False)(scores, tags)",
    "sets": "tm.CRFLoss()(scores, torch.where(torch.rand(2, 4) < 0.5, tags, -100)).backward()",
    "decoders": "[decoder(scores) for decoder in (tm.ViterbiDecoder(), tm.PosteriorDecoder(), tm.KBestDecoder(2))]",
    "marginals": "scores.marginals(), scores.pair_marginals(), scores.entropy(), scores.sample(2)",
    "twice": "torch.autograd.grad(scores.log_partition().sum(), e, create_graph=True)[0].pow(2).sum().backward()",
    "flat": "tm.CrammerSingerLoss()(e[0], tags[0]).backward(); tm.CRFLoss()(e[0], tags[0])",
    "heads": "h = tm.ChainHead(3, 3); s = h(e.detach()); h.loss(s, tags).backward(); h.predict(s)",
}


@pytest.mark.parametrize("library", ["1", "0"])
def test_nothing_imports_the_compiler(library):
    code = f"""
import sys, warnings, torch
import torch_multiclass as tm
e, tags = torch.randn(2, 4, 3, requires_grad=True), torch.randint(3, (2, 4))
for name, call in {CALLS!r}.items():
    scores = tm.ChainScores(e, torch.zeros(3, 3))
    exec(call)
    found = [module for module in ("torch._dynamo", "sympy") if module in sys.modules]
    assert not found, f"{{name}} imports {{found}}"
"""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "TORCH_MULTICLASS_NATIVE": library}
    found = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr

"""Binary losses as objects: their derivatives and conjugates, and an eighth that serves everywhere."""

import copy
import math
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from torch_multiclass import codes, margins, metrics
from torch_multiclass.ops.margins import MarginLoss, as_margin_loss


class ModifiedHuber(MarginLoss):
    """``[1 - z]_+^2``, and the tangent ``-4z`` below -1 (Zhang, 2004)."""

    name, at_zero = "modified_huber", 1.0

    def value(self, z):
        return torch.where(z < -1, -4 * z, (1 - z).clamp(min=0).square())

    def slope(self, z):
        return torch.where(z < -1, -4.0, -2 * (1 - z).clamp(min=0))

    def curvature(self, z):
        return torch.where((z > -1) & (z < 1), 2.0, torch.zeros_like(z))

    def conjugate(self, u):
        return torch.where((u >= -4) & (u <= 0), u + u.square() / 4, torch.inf)


margins.register(ModifiedHuber())

every_loss = pytest.mark.parametrize("loss", [as_margin_loss(name) for name in margins.names()], ids=repr)
points = torch.linspace(-4, 4, 41, dtype=torch.float64) + 0.013  # off the kinks


@every_loss
def test_slope_and_curvature_are_the_derivatives(loss):
    step = 1e-5
    slope = (loss.value(points + step) - loss.value(points - step)) / (2 * step)
    torch.testing.assert_close(loss.slope(points), slope, rtol=1e-7, atol=1e-7)
    curvature = (loss.slope(points + step) - loss.slope(points - step)) / (2 * step)
    torch.testing.assert_close(loss.curvature(points), curvature, rtol=1e-7, atol=1e-7)


@every_loss
def test_the_conjugate_is_the_largest_lead_of_a_line(loss):
    """``l*(u) = sup_z [u z - l(z)]``, over a grid that holds the best z wherever the supremum is finite."""
    grid = torch.linspace(-12, 12, 24_001, dtype=torch.float64)
    for u in torch.arange(-50, 11, dtype=torch.float64) / 10:
        lead = u * grid - loss.value(grid)
        found = loss.conjugate(u)
        if found.isinf():
            assert max(lead[0], lead[-1]) == lead.max()  # it grows without bound, towards one end
        elif loss.convex:
            torch.testing.assert_close(found, lead.max(), rtol=0, atol=2e-5)
        else:
            assert (u, found) == (0, 0)


@pytest.mark.parametrize("name", [name for name in margins.names() if as_margin_loss(name).convex])
@given(z=st.floats(-8, 8))
def test_value_and_conjugate_meet_at_the_slope(name, z):
    """``l(z) + l*(l'(z)) = z l'(z)``: what makes a fit's own slopes a proof of its gap."""
    loss, z = as_margin_loss(name), torch.tensor(z, dtype=torch.float64)
    u = loss.slope(z)
    torch.testing.assert_close(loss.value(z) + loss.conjugate(u), u * z, rtol=1e-12, atol=1e-12)


@every_loss
def test_parts_and_logarithms_add_up_to_the_value(loss):
    z = torch.cat([points, torch.tensor([0.0, -0.0, 1.0, -1.0])])
    total = sum(unit * term for unit, term in loss.parts(z))
    torch.testing.assert_close(total, loss.value(z), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(loss.log_value(z), loss.value(z).log(), rtol=1e-9, atol=1e-9)
    assert not loss.steps or bool((2 * loss.value(z) % 1 == 0).all())


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_stays_and_nan_is_never_a_number(loss, dtype):
    z = torch.tensor([-2.0, 0.0, 0.5, math.nan], dtype=dtype)
    assert loss.value(z).isnan().tolist() == [False, False, False, True]
    for verb in (loss.value, loss.slope, loss.curvature):
        assert verb(z).dtype == dtype
    assert loss.conjugate(z).dtype == dtype


@every_loss
def test_copies_and_names(loss):
    z = torch.tensor([-0.3, 2.0])
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), as_margin_loss(loss.name)):
        assert torch.equal(twin.value(z), loss.value(z))
        assert repr(twin) == loss.name
    assert as_margin_loss(loss) is loss


def test_bad_losses_are_named():
    with pytest.raises(ValueError, match=r"loss: got 'hinges'; accepted are 'hinge', .*'modified_huber'"):
        as_margin_loss("hinges")
    for odd in (3, None, torch.nn.CrossEntropyLoss(), tm.CRFLoss(), ModifiedHuber):
        with pytest.raises(TypeError, match=r"binary: got .*; accepted are a name, such as 'hinge', and a MarginLoss"):
            as_margin_loss(odd, "binary")

    class Other(ModifiedHuber):
        pass

    with pytest.raises(ValueError, match="the name 'modified_huber' is taken"):
        margins.register(Other())

    class Shifted(ModifiedHuber):
        name, at_zero = "shifted", 0.5

    with pytest.raises(ValueError, match=r"at_zero of 'shifted' is 0\.5, but its value at 0 is 1\.0"):
        margins.register(Shifted())
    with pytest.raises(TypeError, match="loss: got str; accepted is a MarginLoss"):
        margins.register("hinge")

    class Bare(ModifiedHuber):
        at_zero = property()  # as good as none

    class Nameless(margins.MarginLoss):
        value = slope = curvature = conjugate = margins.Hinge.value

    for use in (margins.register, tm.CodedLoss, tm.solvers.BinaryLearner, as_margin_loss):
        with pytest.raises(TypeError, match="loss: Nameless has no name and no at_zero; accepted is a MarginLoss with"):
            use(Nameless())
        with pytest.raises(TypeError, match="loss: Bare has no at_zero"):
            use(Bare())
        with pytest.raises(ValueError, match=r"loss: at_zero of 'shifted' is 0\.5, but its value at 0 is 1\.0"):
            use(Shifted())


# ------------------------------------------------------------------------------- the eighth loss, end to end


def blobs(rows=120):
    generator = torch.Generator().manual_seed(0)
    target = torch.arange(rows) % 4
    return 2 * torch.randn(4, 6, generator=generator)[target] + torch.randn(rows, 6, generator=generator), target


@pytest.mark.parametrize("loss", ["modified_huber", ModifiedHuber()], ids=["name", "object"])
def test_an_eighth_loss_trains_decodes_and_is_measured(loss):
    features, target = blobs()
    head = tm.ECOCHead(6, code=codes.hadamard(4), loss=loss)
    assert isinstance(head.decoder, tm.LossBasedDecoder)
    assert "modified_huber" in repr(head.decoder)
    assert "modified_huber" in repr(head.criterion)
    optimizer = torch.optim.Adam(head.parameters(), 0.05)
    for _ in range(60):
        optimizer.zero_grad()
        head.loss(head(features), target).backward()
        optimizer.step()
    scores = head(features)
    assert (head.predict(scores) == target).float().mean() > 0.9
    assert (head.predict_proba(scores).argmax(-1) == target).float().mean() > 0.9
    metric = metrics.AverageBinaryLoss(loss)
    metric.update(scores, target)
    expected = tm.functional.average_binary_loss(scores, target, loss=loss)
    torch.testing.assert_close(metric.compute(), expected.detach())
    z = head.scorer.coding_matrix[target] * scores.margins
    torch.testing.assert_close(tm.CodedLoss(loss)(scores, target), ModifiedHuber().value(z).sum(-1).mean())


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 60.0]))
def test_an_eighth_loss_decodes_to_the_nearest_row(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    code = codes.one_vs_one(5)
    f = scale * torch.randn(20, 10, generator=generator)
    distances = ModifiedHuber().value(code.double() * f.double().unsqueeze(-2)).sum(-1)
    scores = tm.CodedScores(f, code)
    assert torch.equal(tm.LossBasedDecoder("modified_huber")(scores), distances.argmin(-1))
    torch.testing.assert_close(scores.class_scores("modified_huber").double(), -distances, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", tm.kernels.Gaussian(0.2)], ids=["linear", "gaussian"])
@pytest.mark.parametrize("loss", ["modified_huber", ModifiedHuber()], ids=["name", "object"])
def test_an_eighth_loss_is_certified(loss, kernel):
    """One object and one line: the solver's gap follows from value and conjugate, and both objectives are true."""
    features, target = blobs()
    rows, sign = features.double(), torch.where(target < 2, 1, -1)
    scorer, report = tm.solvers.BinaryLearner(loss, C=0.5, kernel=kernel, tol=1e-6).fit(rows, sign)
    assert report.converged
    assert report.gap <= 1e-6
    z = sign * scorer(rows).squeeze(1)
    primal = 0.5 * scorer.class_norms().square().sum() + 0.5 * ModifiedHuber().value(z).sum()
    assert float(primal.detach()) == pytest.approx(report.primal, rel=1e-9)
    beta = -ModifiedHuber().slope(z)
    gram = rows @ rows.T if kernel == "linear" else kernel(rows, rows)
    alpha = 0.5 * beta * sign
    dual = -0.5 * ModifiedHuber().conjugate(-beta).sum() - 0.5 * alpha @ gram @ alpha
    assert float((primal - dual).detach()) <= 1e-5 * max(1, report.primal)

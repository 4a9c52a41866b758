"""Positive definite symmetric kernels, and the Gram matrices they make."""

from torch_multiclass.checks import lacks
from torch_multiclass.kernels.gram import check_definite as check_definite
from torch_multiclass.kernels.gram import gram
from torch_multiclass.kernels.kernel import Function, Kernel, Linear, Polynomial, as_kernel
from torch_multiclass.kernels.kernel import GramFunction as GramFunction
from torch_multiclass.kernels.precomputed import Precomputed
from torch_multiclass.kernels.radial import Gaussian, Laplacian

__all__ = ["Function", "Gaussian", "Kernel", "Laplacian", "Linear", "Polynomial", "Precomputed", "as_kernel", "gram"]


def __dir__() -> list[str]:
    return sorted(__all__)


lacks(__name__)

"""Reports: what a head does on some examples, and what that proves."""

from torch_multiclass.checks import lacks
from torch_multiclass.reports.build import report
from torch_multiclass.reports.result import HeadReport, Section

__all__ = ["HeadReport", "Section", "report"]


lacks(__name__)

"""Multi-class and sequence heads for PyTorch."""

__version__ = "0.1.0"

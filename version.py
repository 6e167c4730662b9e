"""The version of this package; it stands alone so that any room can name it."""

__version__ = "0.1.0"

"""Traces of Linux kernel memory events: .kmt files. The manual is docs/python.md of kmt."""

from ._native import Columns, Error, Event, Events, Loss, Trace, __version__, open

__all__ = ["Columns", "Error", "Event", "Events", "Loss", "Trace", "__version__", "open"]

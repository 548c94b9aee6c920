"""Parts that all ordinary loads share."""
import os, subprocess, sys, time

TREE = os.path.dirname(os.__file__)  # Python's own library: some thousand files on every machine
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def until(end, step):
    number = 0
    while time.monotonic() < end:
        step(number)
        number += 1


def run(command):
    subprocess.run(["sh", "-c", command], check=False, stdin=subprocess.DEVNULL, **quiet)


class Load:
    """One load: prepare() before the recording, work() until a time."""

    def __init__(self, work, needs="", prepare=lambda: None):
        self.work, self.needs, self.prepare = work, needs.split(), prepare


def shell(command, needs="", prepare=""):
    """A command again and again; PREPARE is run once, before the recording."""
    return Load(lambda end: until(end, lambda _: run(command)), needs, lambda: run(prepare) if prepare else None)


def python(step, needs=""):
    """A function again and again."""
    return Load(lambda end: until(end, step), needs)

"""Made leaks whose holder is hard to see: beside tasks that start late, after a first burst, of two tasks, of threads,
and in batches."""
import concurrent.futures, os, select, struct, subprocess, sys, time

from made_common import CLONE_NEWIPC, KEEPER, Beside, Fds, Kind, done, leak, libc, own_namespace, rename
from made_files import OneFile, OpenFile
from made_ipc import PosixTimer

CHILD = "import time; kept = [open('/etc/passwd') for _ in range(30)]; time.sleep(2.5)"


class LateChildren(Beside, OpenFile):
    """5 files a second, beside 3 processes a second that have 30 files each for 2.5 s: the last ones are still there."""

    rate, of, tasks = 5, 1, (KEEPER,)

    def __init__(self):
        super().__init__()
        child = f'{sys.executable} -SsE -c "{CHILD}"'
        self.start(lambda: subprocess.run(["sh", "-c", f"while :; do {child} & sleep 0.3; done"]))
        rename(KEEPER)


class LateTasks(Beside, OpenFile):
    """15 files a second, beside 40 tasks that start after 12 s, open 5 files each and stay.

    They start within 4 s: tasks that go on starting and never exit are a growth of their own, and a larger one.
    """

    rate, of, tasks = 15, 1, (KEEPER,)

    def __init__(self):
        super().__init__()
        self.start(self.late)
        rename(KEEPER)

    def late(self):
        time.sleep(12)
        for _ in range(40):
            self.start(self.stay)
            time.sleep(0.1)
        time.sleep(900)

    def stay(self):
        kept = [super(LateTasks, self).make() for _ in range(5)]
        time.sleep(900)
        del kept


class WarmUp(OpenFile):
    """2,000 files at the start, then 5 a second by the same task."""

    rate, of, seconds = 5, 1, 40

    def __init__(self):
        super().__init__()
        self.first = [self.make() for _ in range(2000)]


class WarmUpOfOther(Beside):
    """A message of 4 KiB a second, after 2,000 of another task at the same call site."""

    rate, of, seconds, tasks, telling = 1, 1, 40, (KEEPER,), "msg"
    text = b"x" * (4096 - 48)  # with its header an object of 4 KiB

    def __init__(self):
        own_namespace(CLONE_NEWIPC)
        super().__init__()
        with open("/proc/sys/kernel/msgmnb", "w") as file:
            file.write(str(1 << 26))
        self.queue = done(libc.msgget(0, 0o600), "msgget")
        read, write = os.pipe()
        self.start(lambda: self.burst(write), "kmt-first")
        os.read(read, 1)
        rename(KEEPER)

    def burst(self, ready):
        for _ in range(2000):
            self.make()
        os.write(ready, b"x")
        time.sleep(900)

    def make(self):
        done(libc.msgsnd(self.queue, struct.pack("q", 1) + self.text, len(self.text), 0), "msgsnd")


class Opened(Fds):
    """Open files of a path."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def make(self):
        return (os.open(self.path, os.O_RDONLY),)


class Shares(Beside, OneFile):
    """Two tasks that leak at one call site: 60 and 40 files a second."""

    rate, of, tasks = 1, 1, ("kmt-larger", "kmt-smaller")
    telling = "(?=.*kmt-larger)(?=.*kmt-smaller)"

    def __init__(self):
        super().__init__()
        for name, rate in zip(self.tasks, (60, 40)):
            self.start(lambda: leak(Opened(self.file), [], rate), name)

    def make(self):
        """The two tasks make them."""


class Threads:
    """Objects that eight threads of this process make and free in turn."""

    def __init__(self):
        super().__init__()
        self.workers = [concurrent.futures.ThreadPoolExecutor(1) for _ in range(8)]
        self.turn = 0

    def make(self):
        self.turn += 1
        worker = self.workers[self.turn % 8]
        return worker, worker.submit(super().make).result()

    def free(self, made):
        worker, thing = made
        worker.submit(super().free, thing).result()


class ThreadEpoll(Kind):
    def make(self):
        return select.epoll()

    def free(self, epoll):
        epoll.close()


class ThreadEventfd(Kind):
    def make(self):
        return done(libc.eventfd(0, 0), "eventfd")

    def free(self, fd):
        os.close(fd)


def threads(kind):
    return type("ByThreads", (Threads, kind), {"telling": "8 threads"})


class Batches(OneFile):
    """Files that are opened in batches, one each 8 s."""

    rate, seconds, telling = 1 / 8, 40, "open|filp|alloc_empty_file"

    def make(self):
        return [os.open(self.file, os.O_RDONLY) for _ in range(100)]

    def free(self, fds):
        for fd in fds:
            os.close(fd)


class TimerBatches(PosixTimer):
    """Timers that are made in batches, one each 8 s."""

    rate, seconds = 1 / 8, 40

    def make(self):
        return [super(TimerBatches, self).make() for _ in range(60)]

    def free(self, timers):
        for timer in timers:
            super().free(timer)


KINDS = {
    "late_children": LateChildren, "late_tasks": LateTasks, "warm_up": WarmUp, "warm_up_of_other": WarmUpOfOther,
    "shares": Shares, "thread_timers": threads(PosixTimer), "thread_epolls": threads(ThreadEpoll),
    "thread_eventfds": threads(ThreadEventfd), "file_batches": Batches, "timer_batches": TimerBatches,
}

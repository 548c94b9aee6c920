"""Parts that all kinds of made leak share: the base classes, system calls by number, namespaces, limits."""
import ctypes, os, resource, signal, subprocess, tempfile, time

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_REC, MS_PRIVATE, MNT_DETACH = 0x4000, 0x40000, 2
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
KEEPER = "kmt-keeper"  # the task that leaks, where it is beside other work of Python


def number(x86_64, generic):
    """A system call's number: x86_64, or that of the generic table (arm64, riscv64)."""
    return x86_64 if os.uname().machine == "x86_64" else generic


def done(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def syscall(what, numbers, *arguments):
    return done(libc.syscall(number(*numbers), *arguments), what)


def own_namespace(flags):
    """Moves this process into new namespaces: their content ends with it, also if it is killed."""
    done(libc.unshare(flags), "unshare")
    if flags & CLONE_NEWNS:
        done(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount --make-rprivate")


def rename(name):
    """Sets the name of this task."""
    done(libc.prctl(PR_SET_NAME, name.encode()), "PR_SET_NAME")


def limits():
    """Lets a process have as many objects as it leaks in some minutes."""
    hard = max(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1 << 16)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        resource.setrlimit(12, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))  # RLIMIT_MSGQUEUE
    except (ValueError, OSError):
        pass
    for name, value in {
        "fs/mqueue/queues_max": 1 << 20, "kernel/shmmni": 32768, "kernel/keys/root_maxkeys": 1 << 24,
        "kernel/keys/root_maxbytes": 1 << 30, "vm/max_map_count": 1 << 20, "fs/inotify/max_user_watches": 1 << 20,
        "fs/inotify/max_queued_events": 1 << 20, "fs/inotify/max_user_instances": 1 << 20,
        "fs/pipe-user-pages-soft": 0, "fs/aio-max-nr": 1 << 20, "fs/fanotify/max_user_marks": 1 << 20,
        "kernel/pty/max": 1 << 16,
    }.items():
        try:
            with open("/proc/sys/" + name) as file:
                is_enough = int(file.read()) >= value > 0
            if not is_enough:
                with open("/proc/sys/" + name, "w") as file:
                    file.write(str(value))
        except OSError:
            pass


class Kind:
    """One kind: make() gives an object, free() takes it back."""

    rate = 100  # objects kept a second; fewer where they are expensive or few
    of = 5  # one is kept of this many that are made
    seconds = 0  # shortest recording that can show it
    needs = ""  # programs, and files by their path, without which it cannot be made
    tasks = ("python",)  # tasks that the kernel shows as makers: this process, or the commands that it starts
    telling = ""  # pattern of names that identify the object

    def __init__(self):
        self.number = 0

    def close(self):
        """Takes back what the end of the process leaves."""


def leak(kind, kept, rate, seconds=float("inf")):
    """Makes objects and adds those to KEPT that are not freed."""
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        made = [kind.make() for _ in range(kind.of)]
        kept.append(made.pop(len(kept) % kind.of))
        for thing in made:
            kind.free(thing)
        time.sleep(max(0, len(kept) / rate - now))


class Beside(Kind):
    """A leak beside the work of other processes, which end with the maker."""

    def __init__(self):
        super().__init__()
        self.others = []

    def start(self, work, name=None):
        """Starts a process; it and what it starts are one process group."""
        pid = os.fork()
        if pid:
            self.others.append(pid)
            return
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setpgid(0, 0)
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if name:
                rename(name)
            work()
        finally:
            os._exit(0)

    def close(self):
        for pid in self.others:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        super().close()


class Fds(Kind):
    def free(self, fds):
        for fd in fds:
            os.close(fd)


def fds(make, telling, rate=100):
    """A kind whose objects are single file descriptors."""
    return type("Fd", (Fds,), {"make": lambda _: (make(),), "telling": telling, "rate": rate})


class InFolder(Kind):
    """Objects with names in a folder of their own."""

    place = None

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="kmt-made-", dir=self.place)

    def path(self):
        self.number += 1
        return f"{self.folder}/{self.number}"

    def close(self):
        subprocess.run(["rm", "-rf", self.folder], check=True)

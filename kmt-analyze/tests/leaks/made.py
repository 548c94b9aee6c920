#!/usr/bin/env python3
"""Makes one kind of kernel object, keeps one of five and frees the others: made.py KIND SECONDS [LEAKS_PER_SECOND]

What stays is a leak as a careless program makes it. Needs root. `made.py --list` names the kinds.
"""
import ctypes, fcntl, mmap, os, resource, select, signal, socket, struct, subprocess, sys, tempfile, time

libc = ctypes.CDLL(None, use_errno=True)
F_SETPIPE_SZ, F_OFD_SETLK = 1031, 37
IPC_PRIVATE, IPC_RMID = 0, 0
MAP_ANONYMOUS = 0x20


def numbers(**by_machine):
    """A system call's number: x86_64, or that of the generic table (arm64, riscv64)."""
    return by_machine["x86_64" if os.uname().machine == "x86_64" else "generic"]


NR_BPF = numbers(x86_64=321, generic=280)
NR_ADD_KEY, NR_KEYCTL = numbers(x86_64=(248, 250), generic=(217, 219))
NR_TIMER_CREATE, NR_TIMER_DELETE = numbers(x86_64=(222, 226), generic=(107, 111))
NR_TIMERFD_CREATE = numbers(x86_64=283, generic=85)


def done(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def limits():
    """Lets a process have as many objects as it leaks in some minutes."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        resource.setrlimit(12, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))  # RLIMIT_MSGQUEUE
    except (ValueError, OSError):
        pass
    for name, value in {
        "fs/mqueue/queues_max": 1 << 20, "kernel/shmmni": 32768, "kernel/keys/root_maxkeys": 1 << 24,
        "kernel/keys/root_maxbytes": 1 << 30, "vm/max_map_count": 1 << 20, "fs/inotify/max_user_watches": 1 << 20,
        "fs/inotify/max_queued_events": 1 << 20, "fs/pipe-user-pages-soft": 0,
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

    def __init__(self):
        self.number = 0

    def close(self):
        """Takes back what the end of the process leaves."""


class Fds(Kind):
    def free(self, fds):
        for fd in fds:
            os.close(fd)


class Pipe(Fds):
    def make(self):
        return os.pipe()


class LargeKmalloc(Fds):
    """A pipe of a megabyte has an array of 256 pipe_buffers: more than the largest size class."""

    def make(self):
        fds = os.pipe()
        fcntl.fcntl(fds[0], F_SETPIPE_SZ, 1 << 20)
        return fds


class Epoll(Kind):
    def __init__(self):
        super().__init__()
        self.watched = os.pipe()

    def make(self):
        epoll = select.epoll()
        epoll.register(self.watched[0], select.EPOLLIN)
        return epoll

    def free(self, epoll):
        epoll.close()


class Timerfd(Fds):
    def make(self):
        return (done(libc.syscall(NR_TIMERFD_CREATE, 1, 0), "timerfd_create"),)


class PosixTimer(Kind):
    def make(self):
        event = (ctypes.c_byte * 64)()
        struct.pack_into("qii", event, 0, 0, 0, 1)  # SIGEV_NONE
        number = ctypes.c_int()
        done(libc.syscall(NR_TIMER_CREATE, 1, event, ctypes.byref(number)), "timer_create")
        return number.value

    def free(self, number):
        done(libc.syscall(NR_TIMER_DELETE, number), "timer_delete")


class Socket(Kind):
    def make(self):
        return socket.socketpair()

    def free(self, pair):
        for end in pair:
            end.close()


class Mqueue(Kind):
    def make(self):
        self.number += 1
        name = f"/kmt-{os.getpid()}-{self.number}".encode()
        attributes = struct.pack("4q4q", 0, 1, 64, 0, 0, 0, 0, 0)
        return name, done(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, attributes), "mq_open")

    def free(self, queue):
        os.close(queue[1])
        done(libc.mq_unlink(queue[0]), "mq_unlink")

    def close(self):
        for number in range(self.number + 1):
            libc.mq_unlink(f"/kmt-{os.getpid()}-{number}".encode())


class Key(Kind):
    def make(self):
        self.number += 1
        name = f"kmt-{self.number}".encode()
        return done(libc.syscall(NR_ADD_KEY, b"user", name, b"payload", 7, -2), "add_key")

    def free(self, key):
        done(libc.syscall(NR_KEYCTL, 9, key, -2), "KEYCTL_UNLINK")


class Inotify(Kind):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="kmt-inotify-")
        self.fd = done(libc.inotify_init1(0), "inotify_init1")

    def make(self):
        self.number += 1
        path = f"{self.folder}/{self.number}"
        os.mkdir(path)
        return path, done(libc.inotify_add_watch(self.fd, path.encode(), 2), "inotify_add_watch")

    def free(self, watch):
        done(libc.inotify_rm_watch(self.fd, watch[1]), "inotify_rm_watch")
        os.rmdir(watch[0])

    def close(self):
        subprocess.run(["rm", "-rf", self.folder], check=True)


class SharedMemory(Kind):
    def __init__(self):
        super().__init__()
        self.kept = []

    def make(self):
        self.kept.append(done(libc.shmget(IPC_PRIVATE, 4096, 0o600), "shmget"))
        return self.kept[-1]

    def free(self, number):
        done(libc.shmctl(number, IPC_RMID, None), "shmctl")
        self.kept.remove(number)

    def close(self):
        for number in list(self.kept):
            self.free(number)


class Tmpfs(Kind):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="kmt-tmpfs-", dir="/dev/shm")

    def make(self):
        self.number += 1
        path = f"{self.folder}/{self.number}"
        with open(path, "wb") as file:
            file.write(b"x")
        return path

    def free(self, path):
        os.unlink(path)

    def close(self):
        subprocess.run(["rm", "-rf", self.folder], check=True)


class BpfMap(Fds):
    def make(self):
        attributes = struct.pack("4I", 2, 4, 64, 1) + bytes(104)  # BPF_MAP_TYPE_ARRAY of one value of 64 bytes
        return (done(libc.syscall(NR_BPF, 0, attributes, len(attributes)), "BPF_MAP_CREATE"),)


class FileLock(Kind):
    def __init__(self):
        super().__init__()
        self.file = tempfile.TemporaryFile()

    def lock(self, kind, start):
        fcntl.fcntl(self.file, F_OFD_SETLK, struct.pack("hhqqi4x", kind, 0, start, 1, 0))

    def make(self):
        self.number += 2
        self.lock(fcntl.F_WRLCK, self.number)
        return self.number

    def free(self, start):
        self.lock(fcntl.F_UNLCK, start)


class Vma(Kind):
    """Anonymous memory whose protection alternates: neighbours that differ do not merge."""

    def make(self):
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        self.number += 1
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if self.number % 2 else 0)
        return libc.mmap(None, 8192, protection, mmap.MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)

    def free(self, address):
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        libc.munmap(address, 8192)


KINDS = {
    "pipe": Pipe, "epoll": Epoll, "timerfd": Timerfd, "posix_timer": PosixTimer, "socket": Socket,
    "mqueue": Mqueue, "key": Key, "inotify": Inotify, "shared_memory": SharedMemory, "tmpfs": Tmpfs,
    "bpf_map": BpfMap, "file_lock": FileLock, "vma": Vma, "large_kmalloc": LargeKmalloc,
}


# Kept a second, where the limit of a process leaves less than a minute of 100 (RLIMIT_MSGQUEUE).
RATES = {"mqueue": 40}


def main():
    if sys.argv[1] == "--list":
        print("\n".join(KINDS))
        return
    seconds = float(sys.argv[2])
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else RATES.get(sys.argv[1], 100)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    limits()
    kind, kept = KINDS[sys.argv[1]](), []
    begin = time.monotonic()
    try:
        while (now := time.monotonic() - begin) < seconds:
            made = [kind.make() for _ in range(5)]
            kept.append(made.pop(len(kept) % 5))
            for thing in made:
                kind.free(thing)
            time.sleep(max(0, len(kept) / rate - now))
    finally:
        print(f"{sys.argv[1]}: {len(kept)} kept", flush=True)
        kind.close()


main()

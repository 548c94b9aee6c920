"""Made leaks of file descriptors that are not sockets."""
import ctypes, fcntl, os, pty, select, struct

from made_common import Fds, Kind, done, fds, libc, syscall

F_SETPIPE_SZ = 1031


class Pipe(Fds):
    telling = "pipe"

    def make(self):
        return os.pipe()


class LargeKmalloc(Fds):
    """A pipe of a megabyte has an array of 256 pipe_buffers: more than the largest size class."""

    telling = "pipe"

    def make(self):
        made = os.pipe()
        fcntl.fcntl(made[0], F_SETPIPE_SZ, 1 << 20)
        return made


class Epoll(Kind):
    telling = "epoll|eventpoll|ep_"

    def __init__(self):
        super().__init__()
        self.watched = os.pipe()

    def make(self):
        epoll = select.epoll()
        epoll.register(self.watched[0], select.EPOLLIN)
        return epoll

    def free(self, epoll):
        epoll.close()


class EpollItem(Kind):
    """One epoll that watches more and more descriptors."""

    telling = "epoll|eventpoll|ep_"

    def __init__(self):
        super().__init__()
        self.watched, self.epoll = os.pipe(), select.epoll()

    def make(self):
        fd = os.dup(self.watched[0])
        self.epoll.register(fd, select.EPOLLIN)
        return fd

    def free(self, fd):
        self.epoll.unregister(fd)
        os.close(fd)


class Aio(Kind):
    telling = "aio|io_setup|ioctx"
    rate = 6  # each end of one waits for a grace period of RCU

    def make(self):
        context = ctypes.c_ulong()
        syscall("io_setup", (206, 0), 8, ctypes.byref(context))
        return context

    def free(self, context):
        syscall("io_destroy", (207, 1), context)


class Pty(Fds):
    telling = "pty|ptmx|tty"
    rate = 20

    def make(self):
        return pty.openpty()


class Kvm(Fds):
    """Virtual machines without CPUs."""

    telling = "kvm"
    rate = 3

    def __init__(self):
        super().__init__()
        self.device = os.open("/dev/kvm", os.O_RDWR)

    def make(self):
        return (fcntl.ioctl(self.device, 0xAE01, 0),)  # KVM_CREATE_VM


def bpf_map():
    attributes = struct.pack("4I", 2, 4, 64, 1) + bytes(104)  # BPF_MAP_TYPE_ARRAY of one value of 64 bytes
    return syscall("BPF_MAP_CREATE", (321, 280), 0, attributes, len(attributes))


def bpf_program():
    code = ctypes.create_string_buffer(struct.pack("<BBhi", 0xB7, 0, 0, 0) + struct.pack("<BBhi", 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack("2I2Q", 1, 2, ctypes.addressof(code), ctypes.addressof(licence)) + bytes(104)
    return syscall("BPF_PROG_LOAD", (321, 280), 5, attributes, len(attributes))  # BPF_PROG_TYPE_SOCKET_FILTER


def perf_event():
    """A software event that is not enabled."""
    attributes = struct.pack("2I4Q", 1, 112, 0, 0, 0, 0) + struct.pack("Q", 1) + bytes(64)
    return syscall("perf_event_open", (298, 241), attributes, 0, -1, -1, 0)


KINDS = {
    "pipe": Pipe, "large_kmalloc": LargeKmalloc, "epoll": Epoll, "epoll_item": EpollItem, "aio": Aio, "pty": Pty, "kvm": Kvm,
    "timerfd": fds(lambda: syscall("timerfd_create", (283, 85), 1, 0), "timerfd"),
    "eventfd": fds(lambda: done(libc.eventfd(0, 0), "eventfd"), "eventfd"),
    "signalfd": fds(lambda: syscall("signalfd4", (289, 74), -1, bytes(8), 8, 0), "signalfd"),
    "pidfd": fds(lambda: os.pidfd_open(os.getpid()), "pidfd"),
    "memfd": fds(lambda: os.memfd_create("made"), "memfd|shmem"),
    "userfaultfd": fds(lambda: syscall("userfaultfd", (323, 282), 0), "userfaultfd"),
    "io_uring": fds(lambda: syscall("io_uring_setup", (425, 425), 4, bytes(120)), "io_uring|io_ring", 50),
    "perf_event": fds(perf_event, "perf_event", 50),
    "bpf_map": fds(bpf_map, "bpf|map_alloc"),
    "bpf_program": fds(bpf_program, "bpf"),
    "landlock": fds(lambda: syscall("landlock_create_ruleset", (444, 444), struct.pack("Q", 1), 8, 0), "landlock"),
    "fs_context": fds(lambda: syscall("fsopen", (430, 430), b"tmpfs", 0), "fsopen|fs_context"),
    "inotify_instance": fds(lambda: done(libc.inotify_init1(0), "inotify_init1"), "inotify", 50),
}

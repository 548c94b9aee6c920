"""More made leaks, on which no rule was tuned: memory, signals, credentials, requests, BPF objects, a virtual machine."""
import ctypes, fcntl, mmap, os, signal, struct

from made_common import CLONE_NEWIPC, Fds, Kind, done, fds, libc, own_namespace, syscall
from made_fds import Kvm

CLONE_NEWTIME = 0x80
BPF, BPF_MAP_CREATE, BPF_MAP_UPDATE, BPF_MAP_DELETE, BPF_BTF_LOAD = (321, 280), 0, 2, 3, 18
BPF_HASH, BPF_RINGBUF, BPF_F_NO_PREALLOC = 1, 27, 1
REGISTER_BUFFERS, UNREGISTER_BUFFERS, BUFFERS_OF_KERNEL = 22, 23, 1
KVM_SET_USER_MEMORY_REGION = 0x4020AE46


class SecretMemory(Fds):
    """Memory that the kernel removes from its own map, one page each."""

    telling, rate = "secretmem|secret", 20

    def make(self):
        fd = syscall("memfd_secret", (447, 447), 0)
        os.ftruncate(fd, mmap.PAGESIZE)
        with mmap.mmap(fd, mmap.PAGESIZE) as memory:
            memory[0] = 1
        return (fd,)


class AnonymousPages(Kind):
    """Memory of the program itself: 1.25 MiB a second."""

    telling, rate = "anon|pages", 10

    def make(self):
        memory = mmap.mmap(-1, 128 << 10, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for page in range(0, 128 << 10, mmap.PAGESIZE):
            memory[page] = 1
        return memory

    def free(self, memory):
        memory.close()


class ShmAttach(Kind):
    """One segment of shared memory that is attached again and again."""

    telling = "shm"

    def __init__(self):
        own_namespace(CLONE_NEWIPC)
        super().__init__()
        libc.shmat.restype, libc.shmdt.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        self.segment = done(libc.shmget(0, 4096, 0o600), "shmget")

    def make(self):
        return libc.shmat(self.segment, None, 0)

    def free(self, address):
        done(libc.shmdt(address), "shmdt")


class Mempolicy(Kind):
    """Memory with a policy of its own; two policies alternate, so that neighbours do not merge."""

    telling = "mpol|policy|mbind|vm_area|mmap"

    def __init__(self):
        super().__init__()
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def make(self):
        self.number += 1
        address = libc.mmap(None, 8192, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        size, policy, node = ctypes.c_ulong(8192), 1 + self.number % 2, ctypes.c_ulong(1)  # MPOL_PREFERRED or MPOL_BIND
        syscall("mbind", (237, 235), ctypes.c_void_p(address), size, policy, ctypes.byref(node), ctypes.c_ulong(8), 0)
        return address

    def free(self, address):
        libc.munmap(address, 8192)


class QueuedSignals(Kind):
    """Signals with a value that are blocked; none is received."""

    telling, of = "signal|sigqueue", 1

    def __init__(self):
        super().__init__()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])

    def make(self):
        done(libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(1)), "sigqueue")


class Credentials(Fds):
    """Open files that keep the groups and credentials with which they were opened."""

    telling = "cred|groups"

    def make(self):
        self.number += 1
        os.setgroups(range(self.number, self.number + 60))
        return (os.open("/dev/null", os.O_RDONLY),)


class TimeNamespace(Fds):
    telling, rate = "timens|time_ns|time_namespace", 40

    def make(self):
        done(libc.unshare(CLONE_NEWTIME), "unshare")
        return (os.open("/proc/self/ns/time_for_children", os.O_RDONLY),)


class KvmSlot(Kind):
    """Memory of one virtual machine, a region of a page each."""

    telling, rate, needs = "kvm", 8, "/dev/kvm"

    def __init__(self):
        super().__init__()
        self.machine = Kvm().make()[0]
        self.memory = mmap.mmap(-1, 4096)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def set(self, slot, size):
        region = struct.pack("IIQQQ", slot, 0, slot << 16, size, self.address)
        fcntl.ioctl(self.machine, KVM_SET_USER_MEMORY_REGION, region)

    def make(self):
        self.number += 1
        self.set(self.number, 4096)
        return self.number

    def free(self, slot):
        self.set(slot, 0)


class AioRequests(Kind):
    """Requests to wait for an event that does not occur."""

    telling, of = "aio|io_submit", 1

    def __init__(self):
        super().__init__()
        self.context, self.watched = ctypes.c_ulong(), done(libc.eventfd(0, 0), "eventfd")
        syscall("io_setup", (206, 0), 8192, ctypes.byref(self.context))

    def make(self):
        request = ctypes.create_string_buffer(struct.pack("QIIHhIQQqQII", 0, 0, 0, 5, 0, self.watched, 1, 0, 0, 0, 0, 0))
        requests = ctypes.byref(ctypes.c_void_p(ctypes.addressof(request)))
        syscall("io_submit", (209, 2), self.context, 1, requests)


class IoUringBuffers(Kind):
    """Rings of buffers, a page each, that are registered with one io_uring."""

    telling, rate = "io_uring|pbuf|io_", 50

    def __init__(self):
        super().__init__()
        self.ring = syscall("io_uring_setup", (425, 425), 4, bytes(120))

    def register(self, what, group, entries):
        request = struct.pack("QIHH24x", 0, entries, group, BUFFERS_OF_KERNEL if entries else 0)
        syscall("io_uring_register", (427, 427), self.ring, what, request, 1)

    def make(self):
        self.number += 1
        self.register(REGISTER_BUFFERS, self.number, 256)
        return self.number

    def free(self, group):
        self.register(UNREGISTER_BUFFERS, group, 0)


def bpf(what, command, attributes):
    attributes = ctypes.create_string_buffer(attributes + bytes(120 - len(attributes)))
    return syscall(what, BPF, command, attributes, 120)


class BpfElements(Kind):
    """Elements of one hash map, which the kernel allocates one by one."""

    telling = "bpf|htab|alloc_bulk"

    def __init__(self):
        super().__init__()
        self.map = bpf("BPF_MAP_CREATE", BPF_MAP_CREATE, struct.pack("5I", BPF_HASH, 4, 700, 1 << 16, BPF_F_NO_PREALLOC))

    def make(self):
        self.number += 1
        key, value = ctypes.c_uint32(self.number), ctypes.create_string_buffer(700)
        where = struct.pack("I4xQQQ", self.map, ctypes.addressof(key), ctypes.addressof(value), 0)
        bpf("BPF_MAP_UPDATE_ELEM", BPF_MAP_UPDATE, where)
        return key

    def free(self, key):
        bpf("BPF_MAP_DELETE_ELEM", BPF_MAP_DELETE, struct.pack("I4xQQQ", self.map, ctypes.addressof(key), 0, 0))


def bpf_types():
    """Type information of one integer."""
    types, names = struct.pack("IIII", 1, 1 << 24, 4, 32), b"\0int\0"
    header = struct.pack("HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names))
    blob = ctypes.create_string_buffer(header + types + names)
    return bpf("BPF_BTF_LOAD", BPF_BTF_LOAD, struct.pack("QQIII", ctypes.addressof(blob), 0, len(blob) - 1, 0, 0))


def bpf_ring():
    """A ring buffer of a page."""
    return bpf("BPF_MAP_CREATE", BPF_MAP_CREATE, struct.pack("5I", BPF_RINGBUF, 0, 0, mmap.PAGESIZE, 0))


KINDS = {
    "secret_memory": SecretMemory, "anonymous_pages": AnonymousPages, "shm_attach": ShmAttach, "mempolicy": Mempolicy,
    "queued_signals": QueuedSignals, "credentials": Credentials, "time_namespace": TimeNamespace, "kvm_slot": KvmSlot,
    "aio_requests": AioRequests, "io_uring_buffers": IoUringBuffers, "bpf_elements": BpfElements,
    "bpf_types": fds(bpf_types, "bpf|btf", 50), "bpf_ring": fds(bpf_ring, "bpf|ringbuf", 20),
}

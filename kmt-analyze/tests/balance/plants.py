#!/usr/bin/env python3
"""Memory of one account, allocated and kept: plants.py NAME MEBIBYTES.

Prints "ready", waits for a line on standard input, allocates, prints "planted", and keeps the memory until standard input ends.
Kinds: `--list` prints name, account (or the use of pages in no account), task, files that are needed, and an account that grows
with it by so many times the amount. All memory ends with the process, except for huge pages and files, which it removes.
"""
import ctypes, mmap, os, shutil, socket, struct, sys, tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "leaks"))
from made_common import limits, rename, syscall

MIB = 1 << 20
TASK = "kmt-planter"
BPF, BPF_MAP_CREATE, BPF_ARRAY, BPF_PERCPU_ARRAY = (321, 280), 0, 2, 6
IO_URING_SETUP = (425, 425)
TRACING = "/sys/kernel/tracing/instances/kmt-planted"
KEPT = []


def folder(where=None):
    """A folder that is removed at the end."""
    path = tempfile.mkdtemp(prefix="kmt-planted-", dir=where)
    KEPT.append(lambda: shutil.rmtree(path, ignore_errors=True))
    return path


def page_cache(mib):
    with open(os.path.join(folder("/var/tmp"), "file"), "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(4096) * (MIB // 4096))
        os.fsync(file.fileno())


def anonymous(mib):
    area = mmap.mmap(-1, mib * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, mib * MIB, 4096):
        area[at] = 1
    KEPT.append(area.close)


def shmem(mib):
    with open(os.path.join(folder("/dev/shm"), "file"), "wb") as file:
        for _ in range(mib):
            file.write(b"x" * MIB)


def slab_reclaimable(mib):
    """Dentries of names that do not exist: 192 bytes each, and no inodes."""
    files = os.path.join(folder("/var/tmp"), "")
    for number in range(mib * MIB // 192):
        os.access(f"{files}none-{number}", os.F_OK)


def slab_unreclaimable(mib):
    """Datagrams that are not received: an skb and its data each."""
    limits()
    for _ in range(mib * 3):
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        pair[0].setblocking(False)
        pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        KEPT.append(pair)
        sent = 0
        # An object of 512 bytes for the data, and one of 256 for the skb.
        while sent < MIB // 3 // 768:
            try:
                pair[0].send(b"x" * 100)
            except BlockingIOError:
                break
            sent += 1


def page_tables(mib):
    """The zero page, once in each 2 MiB: only page tables are allocated."""
    size = mib * MIB // 4096 * (2 << 20)
    area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, size, 2 << 20):
        area[at]
    KEPT.append(area.close)


def bpf_map(kind, value_len, entries):
    attributes = struct.pack("5I", kind, 4, value_len, entries, 0).ljust(128, b"\0")
    buffer = ctypes.create_string_buffer(attributes)
    KEPT.append(syscall("bpf", BPF, BPF_MAP_CREATE, buffer, 128))


def possible_cpus():
    with open("/sys/devices/system/cpu/possible") as file:
        return int(file.read().split("-")[-1]) + 1


def percpu(mib):
    bpf_map(BPF_PERCPU_ARRAY, 32768, mib * MIB // 32768 // possible_cpus())


def beside_percpu():
    """MiB of vmalloc for each MiB of percpu memory: 8 bytes for each 4 bytes of a CPU (`obj_exts`, mm/percpu.c), with memory cgroups."""
    with open("/proc/cgroups") as file:
        has_memory = any(line.startswith("memory\t") and line.split()[3] == "1" for line in file)
    return 2 / possible_cpus() if has_memory else 0


def vmalloc(mib):
    bpf_map(BPF_ARRAY, 4096, mib * MIB // 4096)


def ring_buffers(mib):
    """Buffers of an instance of tracing, which the kernel counts nowhere."""
    os.mkdir(TRACING)
    KEPT.append(lambda: os.rmdir(TRACING))
    with open(f"{TRACING}/buffer_size_kb", "w") as file:
        file.write(str(mib * 1024 // os.cpu_count()))


def packet_ring(mib):
    ring = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    block, count = 1 << 16, mib * MIB >> 16
    ring.setsockopt(263, 5, struct.pack("4I", block, count, 2048, block // 2048 * count))  # SOL_PACKET, PACKET_RX_RING
    KEPT.append(ring)


def io_uring(mib):
    """Rings of 4 MiB: 32,768 entries of 64 bytes, and the completions with their array."""
    limits()
    for _ in range(mib // 4):
        parameters = ctypes.create_string_buffer(120)
        KEPT.append(syscall("io_uring_setup", IO_URING_SETUP, 32768, parameters))


def hugetlb(mib):
    path = "/proc/sys/vm/nr_hugepages"
    before = open(path).read()

    def set_to(text):
        with open(path, "w") as file:
            file.write(text)

    KEPT.append(lambda: set_to(before))
    set_to(str(int(before) + mib // 2))


# Name, function, account or use, task that holds it, files that it needs.
KINDS = {
    "page_cache": (page_cache, "page_cache", TASK, []),
    "anonymous": (anonymous, "anonymous", TASK, []),
    "shmem": (shmem, "shmem", TASK, ["/dev/shm"]),
    "slab_reclaimable": (slab_reclaimable, "slab_reclaimable", TASK, []),
    "slab_unreclaimable": (slab_unreclaimable, "slab_unreclaimable", TASK, []),
    "page_tables": (page_tables, "page_tables", TASK, []),
    "percpu": (percpu, "percpu", TASK, []),
    "vmalloc": (vmalloc, "vmalloc", TASK, []),
    "hugetlb": (hugetlb, "hugetlb", TASK, ["/proc/sys/vm/nr_hugepages"]),
    "ring_buffers": (ring_buffers, "ring buffers", TASK, ["/sys/kernel/tracing/instances"]),
    "io_uring": (io_uring, "io_uring", TASK, []),
    "packet_ring": (packet_ring, "network buffers", TASK, []),
}


def main():
    if sys.argv[1:] == ["--list"]:
        for name, (_, account, task, needs) in KINDS.items():
            beside = f"vmalloc {beside_percpu()}" if name == "percpu" else ""
            print("\t".join([name, account, task, " ".join(needs), beside]))
        return
    name, mib = sys.argv[1], int(sys.argv[2])
    rename(TASK)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        KINDS[name][0](mib)
        print("planted", flush=True)
        sys.stdin.read()
    finally:
        for kept in reversed(KEPT):
            if callable(kept):
                kept()


if __name__ == "__main__":
    main()

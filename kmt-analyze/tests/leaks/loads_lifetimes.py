"""Ordinary loads whose objects have a lifetime that the kernel sets, or are freed in a way of their own."""
import os, signal, socket, time

from loads_common import Load, run, shell, until
from made_common import CLONE_NEWNET, own_namespace

# What a JVM reads at its start, and other programs that size themselves by the machine.
KERNFS = " ".join((
    "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/present",
    "/sys/devices/system/node/online", "/sys/devices/system/node/node0/meminfo", "/sys/devices/system/cpu/cpu0/topology/core_id",
    "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/unified/cgroup.controllers", "/sys/fs/cgroup/memory/memory.stat",
))


def time_wait(end):
    """A TCP server that closes first: its ends of 200 connections a second are in TIME_WAIT, for a minute each."""
    own_namespace(CLONE_NEWNET)
    run("ip link set lo up")
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        while True:
            with listener.accept()[0] as connection:
                connection.sendall(connection.recv(4096))

    def ask(number):
        with socket.create_connection(listener.getsockname()) as connection:
            connection.sendall(b"x" * 900)
            while connection.recv(4096):
                pass
        time.sleep(0.005)

    until(end, ask)


LOADS = {
    "time_wait": Load(time_wait, "ip"),
    "kernfs": shell(f"for n in 1 2 3 4 5 6 7 8; do cat {KERNFS} & done; wait"),
    "java": shell("java -version", "java"),
}

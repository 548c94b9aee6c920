"""Made leaks that netlink messages of the maker itself make, in a network namespace of its own."""
import os, socket, struct, subprocess

from made_common import CLONE_NEWNET, Kind, own_namespace

NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 1, 4, 0x200, 0x400
RTM_NEWNEIGH, RTM_DELNEIGH, NUD_PERMANENT, NDA_DST, NDA_LLADDR = 28, 29, 0x80, 1, 2


def attribute(kind, data):
    return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


class Netlink:
    """A netlink socket that sends one request at a time and waits until the kernel has done it."""

    def __init__(self, protocol=0):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self.socket.bind((0, 0))

    def message(self, kind, flags, body):
        return struct.pack("IHHII", 16 + len(body), kind, NLM_F_REQUEST | flags, 1, 0) + body

    def request(self, kind, flags, body):
        self.send(self.message(kind, NLM_F_ACK | flags, body), kind)

    def send(self, message, what):
        self.socket.send(message)
        error = -struct.unpack_from("i", self.socket.recv(1 << 16), 16)[0]
        if error:
            raise OSError(error, f"netlink message {what:#x}: {os.strerror(error)}")


class Configured(Kind):
    """Configuration of a pair of network devices, in a network namespace that ends with the maker."""

    device = "va"
    protocol = 0

    def __init__(self):
        own_namespace(CLONE_NEWNET)
        super().__init__()
        for words in ("link set lo up", "link add va type veth peer name vb", "link set va up", "link set vb up"):
            subprocess.run(["ip", *words.split()], check=True, stdin=subprocess.DEVNULL)
        self.index = socket.if_nametoindex(self.device)
        self.netlink = Netlink(self.protocol)


class Neighbours(Configured):
    """About 65 neighbours a second, of which 1 of 500 is deleted: the end of those has no event."""

    rate, of, telling = 65, 1, "neigh"

    def neighbour(self, n):
        header = struct.pack("BBHiHBB", socket.AF_INET, 0, 0, self.index, NUD_PERMANENT, 0, 0)
        address = struct.pack(">I", (10 << 24) + n)
        return header + attribute(NDA_DST, address) + attribute(NDA_LLADDR, b"\x02\0" + address)

    def make(self):
        self.number += 1
        self.netlink.request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_EXCL, self.neighbour(self.number))
        if self.number % 500 == 0:
            self.netlink.request(RTM_DELNEIGH, 0, self.neighbour(self.number - 50))


KINDS = {"neighbours": Neighbours}

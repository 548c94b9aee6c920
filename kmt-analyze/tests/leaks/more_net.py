"""More made leaks, on which no rule was tuned: data in sockets, what belongs to sockets, and tables of the network."""
import ctypes, mmap, os, socket, struct, subprocess

from made_common import Kind
from made_net import Ip, OwnNet
from made_netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, Configured, attribute

SO_ATTACH_FILTER, SO_RCVBUFFORCE, SO_SNDBUFFORCE = 26, 33, 32
TCP_MD5SIG, IPV6_FLOWLABEL_MGR, SOL_PACKET, PACKET_RX_RING, SOL_XDP, XDP_UMEM_REG, AF_XDP = 14, 32, 263, 5, 283, 4, 44
MRT_INIT, MRT_ADD_MFC, MRT_DEL_MFC = 200, 204, 205
NETLINK_USERSOCK, NETLINK_NETFILTER, BATCH_BEGIN, BATCH_END, NFTABLES, ACCOUNTS = 2, 12, 16, 17, 10 << 8, 7 << 8
RTM_NEWNEIGH, RTM_DELNEIGH, RTM_NEWNEXTHOP, RTM_DELNEXTHOP, RTM_NEWLINKPROP, RTM_DELLINKPROP = 28, 29, 104, 105, 108, 109


def address(n):
    """Four bytes that differ for each number, as the end of an address of 10.0.0.0/8 or 239.0.0.0/8."""
    return struct.pack(">I", n)[1:]


class UdpQueue(OwnNet):
    """Datagrams of 1,000 bytes that are not received."""

    telling, of = "udp|skb|sock|ip_", 1

    def __init__(self):
        super().__init__()
        self.sink, self.source = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
        self.sink.bind(("127.0.0.1", 0))
        self.sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 29)

    def make(self):
        self.source.sendto(bytes(1000), self.sink.getsockname())


class TcpQueue(OwnNet):
    """200 KB a second over one connection that are not received."""

    telling, of, rate = "tcp|skb|sock|pages", 1, 20

    def __init__(self):
        super().__init__()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        self.client = socket.create_connection(listener.getsockname())
        self.client.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
        self.server = listener.accept()[0]

    def make(self):
        self.client.sendall(bytes(10_000))


class NetlinkQueue(Kind):
    """Messages between two netlink sockets that are not received."""

    telling, of = "netlink|skb", 1

    def __init__(self):
        super().__init__()
        self.sink, self.source = (socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_USERSOCK) for _ in range(2))
        self.sink.bind((0, 0))
        self.sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 29)

    def make(self):
        self.source.sendto(bytes(1500), self.sink.getsockname())


class Filtered(Kind):
    """Sockets with a filter."""

    telling, rate = "filter|bpf|sock", 50

    def make(self):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xFFFF))
        made.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("H6xQ", 1, ctypes.addressof(code)))
        return made

    def free(self, made):
        made.close()


class PacketRing(OwnNet, Filtered):
    """Rings of 64 KiB for packets."""

    telling, rate = "packet|pg_vec|pages", 10

    def make(self):
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        made.setsockopt(SOL_PACKET, PACKET_RX_RING, struct.pack("4I", 16384, 4, 2048, 32))
        return made


class Xdp(OwnNet, Filtered):
    """Sockets of XDP with the same 64 KiB of memory."""

    telling, rate = "xdp|umem|xsk", 20

    def __init__(self):
        super().__init__()
        self.memory = mmap.mmap(-1, 64 << 10)

    def make(self):
        made = socket.socket(AF_XDP, socket.SOCK_RAW, 0)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        made.setsockopt(SOL_XDP, XDP_UMEM_REG, struct.pack("QQIIII", start, 64 << 10, 4096, 0, 0, 0))
        return made


class Option(OwnNet):
    """What a socket option adds to one socket, and another takes back."""

    family, kind, protocol = socket.AF_INET, socket.SOCK_DGRAM, 0
    level = socket.IPPROTO_IP
    add = remove = 0

    def __init__(self):
        super().__init__()
        for name in ("core/optmem_max", "ipv4/igmp_max_memberships"):
            if os.path.exists(f"/proc/sys/net/{name}"):
                with open(f"/proc/sys/net/{name}", "w") as file:
                    file.write(str(1 << 26))
        self.socket = socket.socket(self.family, self.kind, self.protocol)

    def make(self):
        self.number += 1
        self.socket.setsockopt(self.level, self.add, self.option(self.number))
        return self.number

    def free(self, number):
        self.socket.setsockopt(self.level, self.remove, self.option(number))


class Membership(Option):
    """Multicast groups."""

    telling = "mc_|igmp|multicast"
    add, remove = socket.IP_ADD_MEMBERSHIP, socket.IP_DROP_MEMBERSHIP

    def option(self, number):
        return b"\xef" + address(number) + socket.inet_aton("127.0.0.1")


class MulticastRoute(Option):
    telling = "ipmr|mfc|mr_"
    kind, protocol = socket.SOCK_RAW, socket.IPPROTO_IGMP
    add, remove = MRT_ADD_MFC, MRT_DEL_MFC

    def __init__(self):
        super().__init__()
        self.socket.setsockopt(self.level, MRT_INIT, 1)

    def option(self, number):
        return struct.pack("4s4sH32s2xIIIi", b"\x0a" + address(number), b"\xef\1\1\1", 0, bytes([255] * 32), 0, 0, 0, 0)


class FlowLabel(Option):
    """Flow labels of IPv6, which stay for seconds after they are given back: none is."""

    telling, rate, of = "flow|fl_", 40, 1
    family, level, add = socket.AF_INET6, socket.IPPROTO_IPV6, IPV6_FLOWLABEL_MGR

    def option(self, number):
        return struct.pack(">16sI", bytes(15) + b"\1", number) + struct.pack("BBHHHI", 0, 1, 1, 6, 6, 0)


class Md5Key(Option):
    """Keys of TCP for addresses of others."""

    telling = "md5|tcp"
    kind, level, add = socket.SOCK_STREAM, socket.IPPROTO_TCP, TCP_MD5SIG

    def key(self, number, text):
        return struct.pack("HH4s120xBBHI80s", socket.AF_INET, 0, b"\x0a" + address(number), 0, 0, len(text), 0, text)

    def option(self, number):
        return self.key(number, b"secret")

    def free(self, number):
        self.socket.setsockopt(self.level, self.add, self.key(number, b""))


class Table(Configured):
    """An entry of a table of the kernel, which a netlink message adds and another removes."""

    add = remove = 0

    def make(self):
        self.number += 1
        self.netlink.request(self.add, NLM_F_CREATE | NLM_F_EXCL, self.body(self.number))
        return self.number

    def free(self, number):
        self.netlink.request(self.remove, 0, self.body(number))


class Nexthop(Table):
    telling = "nexthop|nh_"
    add, remove = RTM_NEWNEXTHOP, RTM_DELNEXTHOP

    def body(self, number):
        return struct.pack("BBBBI", socket.AF_INET, 0, 0, 0, 0) + attribute(1, struct.pack("I", number)) + attribute(4, b"")

    def free(self, number):
        self.netlink.request(self.remove, 0, struct.pack("8x") + attribute(1, struct.pack("I", number)))


class BridgeEntry(Table):
    """Addresses that a bridge has learned for good."""

    telling = "fdb|br_|bridge"
    add, remove = RTM_NEWNEIGH, RTM_DELNEIGH

    def __init__(self):
        super().__init__()
        for words in ("link add br0 type bridge", "link set va master br0"):
            subprocess.run(["ip", *words.split()], check=True, stdin=subprocess.DEVNULL)

    def body(self, number):
        header = struct.pack("BBHiHBB", socket.AF_BRIDGE, 0, 0, self.index, 0x40, 4, 0)  # NUD_NOARP, NTF_MASTER
        return header + attribute(2, b"\x02\0\0" + address(number))


class DeviceName(Table):
    """Further names of one network device."""

    telling, rate = "name|prop", 25  # the names of one device fit into 64 KiB
    add, remove = RTM_NEWLINKPROP, RTM_DELLINKPROP

    def body(self, number):
        name = attribute(53, f"made{number}\0".encode())
        return struct.pack("BBHiII", 0, 0, 0, self.index, 0, 0) + attribute(52 | 0x8000, name)


class NftTable(Table):
    """Tables of nftables; each request is a transaction."""

    telling = "nf_|nft"
    protocol = NETLINK_NETFILTER
    add, remove = NFTABLES | 0, NFTABLES | 2

    def body(self, number):
        return attribute(1, f"made{number}\0".encode())

    def transaction(self, kind, flags, body):
        header, of_batch = bytes((2, 0, 0, 0)), bytes((0, 0, 0, 10))
        messages = [(BATCH_BEGIN, 0, of_batch), (kind, flags | NLM_F_ACK, header + body), (BATCH_END, 0, of_batch)]
        self.netlink.send(b"".join(self.netlink.message(*one) for one in messages), kind)

    def make(self):
        self.number += 1
        self.transaction(self.add, NLM_F_CREATE | NLM_F_EXCL, self.body(self.number))
        return self.number

    def free(self, number):
        self.transaction(self.remove, 0, self.body(number))


class NftElement(NftTable):
    """Elements of one set of nftables."""

    add, remove = NFTABLES | 12, NFTABLES | 14

    def __init__(self):
        super().__init__()
        number = lambda n: struct.pack(">I", n)
        self.transaction(NFTABLES | 0, NLM_F_CREATE, attribute(1, b"made\0"))
        key = attribute(3, number(0)) + attribute(4, number(0)) + attribute(5, number(4)) + attribute(10, number(1))
        self.transaction(NFTABLES | 9, NLM_F_CREATE, attribute(1, b"made\0") + attribute(2, b"set\0") + key)

    def body(self, number):
        nested = 0x8000
        key = attribute(1 | nested, attribute(1, struct.pack(">I", number)))
        return attribute(1, b"made\0") + attribute(2, b"set\0") + attribute(3 | nested, attribute(1 | nested, key))


class Account(Table):
    """Counters of netfilter by name."""

    telling = "nfnl_acct|nfacct"
    protocol = NETLINK_NETFILTER
    add, remove = ACCOUNTS | 0, ACCOUNTS | 3

    def body(self, number):
        return bytes(4) + attribute(1, f"made{number}\0".encode())


class TrafficClass(Ip):
    """Classes of traffic that the command `tc` adds, one short-lived process each."""

    tasks, telling = ("tc", "python"), "htb|class|tc_|qdisc|gen_"

    def __init__(self):
        super().__init__()
        self.tc("qdisc add dev lo root handle 1: htb")

    def tc(self, words):
        subprocess.run(["tc", *words.split()], check=True, stdin=subprocess.DEVNULL)

    def make(self):
        self.number += 1
        self.tc(f"class add dev lo parent 1: classid 1:{self.number:x} htb rate 1mbit")
        return self.number

    def free(self, number):
        self.tc(f"class del dev lo classid 1:{number:x}")


KINDS = {
    "udp_queue": UdpQueue, "tcp_queue": TcpQueue, "netlink_queue": NetlinkQueue, "filtered": Filtered, "xdp": Xdp,
    "packet_ring": PacketRing, "membership": Membership, "multicast_route": MulticastRoute, "flow_label": FlowLabel,
    "md5_key": Md5Key, "nexthop": Nexthop, "bridge_entry": BridgeEntry, "device_name": DeviceName, "nft_table": NftTable,
    "nft_element": NftElement, "account": Account, "traffic_class": TrafficClass,
}

"""Made leaks of sockets and of network configuration; all of it in a network namespace of the maker."""
import array, fcntl, os, socket, struct, subprocess

from made_common import CLONE_NEWNET, Fds, Kind, own_namespace

SIOCSIFFLAGS, IFF_UP, IFF_TAP, IFF_NO_PI = 0x8914, 1, 2, 0x1000
TUNSETIFF = 0x400454CA


class Socket(Kind):
    telling = "sock|unix"

    def make(self):
        return socket.socketpair()

    def free(self, pair):
        for end in pair:
            end.close()


class FdInFlight(Socket):
    """A pair of sockets with a message that carries a file descriptor and is not received."""

    telling = "unix|scm|sock"

    def make(self):
        pair, pipe = socket.socketpair(), os.pipe()
        pair[0].sendmsg([b"x" * 100], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", pipe[:1]))])
        for fd in pipe:
            os.close(fd)
        return pair


def one_socket(telling, *arguments, rate=100):
    make = lambda _: (socket.socket(*arguments).detach(),)
    return type("OneSocket", (Fds,), {"make": make, "telling": telling, "rate": rate})


class OwnNet(Kind):
    """Objects of a network namespace of this process, which removes them with it."""

    def __init__(self):
        own_namespace(CLONE_NEWNET)
        super().__init__()
        with socket.socket(type=socket.SOCK_DGRAM) as control:
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


class Tcp(OwnNet, Socket):
    """Connections of which neither end is closed."""

    telling = "tcp|inet|sock"
    rate = 50

    def __init__(self):
        super().__init__()
        self.listener = socket.create_server(("127.0.0.1", 0))

    def make(self):
        client = socket.create_connection(self.listener.getsockname())
        # The end of a connection sends a reset: no TIME_WAIT, which would stay for a minute.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return client, self.listener.accept()[0]


class Tap(OwnNet, Fds):
    telling = "tun|tap|netdev"
    rate = 3

    def make(self):
        fd = os.open("/dev/net/tun", os.O_RDWR)
        self.number += 1
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sh22x", f"kmt{self.number}".encode(), IFF_TAP | IFF_NO_PI))
        return (fd,)


class Ip(OwnNet):
    """What the command `ip` adds, one short-lived process each."""

    tasks = ("ip", "python")  # also the name before exec
    rate = 10
    add = remove = ""

    def ip(self, command, n):
        # Three numbers under 250 each, for the parts of an address.
        words = command.format(n=n, a=n // 62500 % 250, b=n // 250 % 250, c=n % 250 + 1).split()
        subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)

    def make(self):
        self.number += 1
        self.ip(self.add, self.number)
        return self.number

    def free(self, n):
        self.ip(self.remove, n)


def ip(add, remove, telling, rate=10):
    return type("Ip", (Ip,), {"add": add, "remove": remove, "telling": telling, "rate": rate})


KINDS = {
    "socket": Socket, "fd_in_flight": FdInFlight, "tcp": Tcp, "tap": Tap,
    "udp": one_socket("udp|inet_create|sock", socket.AF_INET, socket.SOCK_DGRAM),
    "netlink": one_socket("netlink", socket.AF_NETLINK, socket.SOCK_RAW, 0),
    "packet": one_socket("packet", socket.AF_PACKET, socket.SOCK_RAW, 0, rate=15),  # slow to close
    "raw": one_socket("raw|inet_create|sock", socket.AF_INET, socket.SOCK_RAW, 1),
    "vsock": one_socket("vsock|vmci", getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM),
    "veth": ip("link add va{n} type veth peer name vb{n}", "link del va{n}", "veth|netdev|newlink", 3),
    "bridge": ip("link add br{n} type bridge", "link del br{n}", "bridge|br_|netdev|newlink", 3),
    "address": ip("addr add 127.{a}.{b}.{c}/32 dev lo", "addr del 127.{a}.{b}.{c}/32 dev lo", "inet|ifa|newaddr"),
    "route": ip("route add 10.{a}.{b}.{c}/32 dev lo", "route del 10.{a}.{b}.{c}/32", "fib|route"),
    "rule": ip("rule add pref {n} table {n}", "rule del pref {n}", "fib.*rule|rule"),
    "xfrm_policy": ip("xfrm policy add src 10.{a}.{b}.{c} dst 10.0.0.1 dir out action block",
                      "xfrm policy del src 10.{a}.{b}.{c} dst 10.0.0.1 dir out", "xfrm"),
}

#!/usr/bin/env python3
"""Makes and frees what kernels free without an event, then is idle: churn.py SECONDS IDLE_SECONDS [KIND...]

epoll (kfree_rcu of its watchers), maple (nodes of the tree of memory maps, in bulk), skb (packets between sockets, in
bulk), poll (file descriptors' tables). All are given back before the idle part.
"""
import mmap, os, select, socket, sys, time


def epoll(pipe):
    made = [select.epoll() for _ in range(40)]
    for one in made:
        one.register(pipe[0], select.EPOLLIN)
    for one in made:
        one.close()


def maple(_):
    maps = [mmap.mmap(-1, 4096 * (1 + n % 3), prot=mmap.PROT_READ | (n % 2) * mmap.PROT_WRITE) for n in range(60)]
    for one in maps[::2] + maps[1::2]:
        one.close()


def skb(_):
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    udp, sink = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
    sink.bind(("127.0.0.1", 0))
    for _ in range(30):
        one.send(b"x" * 500)
        other.recv(1000)
        udp.sendto(b"y" * 700, sink.getsockname())
    for end in (one, other, udp, sink):
        end.close()


def poll(_):
    fds = [os.dup(0) for _ in range(300)]
    for fd in fds:
        os.close(fd)


KINDS = {"epoll": epoll, "maple": maple, "skb": skb, "poll": poll}


def main():
    seconds, idle = float(sys.argv[1]), float(sys.argv[2])
    kinds = [KINDS[name] for name in sys.argv[3:]] or list(KINDS.values())
    pipe, end = os.pipe(), time.monotonic() + seconds
    while time.monotonic() < end:
        for kind in kinds:
            kind(pipe)
    time.sleep(idle)


main()

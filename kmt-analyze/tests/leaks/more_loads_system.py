"""More ordinary loads on tasks, memory, sockets and IPC, on which no rule was tuned."""
import asyncio, contextlib, ctypes, functools, http.server, mmap, multiprocessing, os, random, select, signal, socket
import struct, threading, time

from loads_common import TREE, Load, python, run, shell, until
from loads_system import Handler
from made_common import CLONE_NEWIPC, CLONE_NEWNET, done, libc, own_namespace, syscall
from made_ipc import ADD_KEY, KEYCTL, KEYCTL_UNLINK, PROCESS_KEYRING
from more_common import child


def memory(number):
    """Memory that is mapped, filled, given back in part, resized and unmapped; every fourth with huge pages."""
    size = random.randrange(1, 16) << 20
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        if number % 4 == 0:
            area.madvise(mmap.MADV_HUGEPAGE)
        area[::4096] = b"x" * (size >> 12)
        area.madvise(mmap.MADV_DONTNEED, 0, size // 2 & ~4095)
        area.resize(size * 2)
        area[size + 1] = 1


def asyncio_server(end):
    """A server of one thread and 20 clients; each connection has up to 50 requests."""
    async def answer(reader, writer):
        with contextlib.suppress(asyncio.CancelledError):
            while text := await reader.read(4096):
                writer.write(text)
                await writer.drain()
        writer.close()

    async def ask(address):
        while time.monotonic() < end:
            reader, writer = await asyncio.open_connection(*address)
            for _ in range(random.randrange(50)):
                writer.write(b"x" * 500)
                await reader.readexactly(500)
            writer.close()
            await asyncio.sleep(random.random() / 20)

    async def all_of_it():
        # An exit in the middle of a request would be reported as an error.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        await asyncio.gather(*(ask(server.sockets[0].getsockname()) for _ in range(20)))

    own_namespace(CLONE_NEWNET)
    run("ip link set lo up")
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(all_of_it())


def ping_pong(end):
    """Two processes that answer each other by a pipe, a socket and signals."""
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    def answer():
        while number := theirs.recv(4096):
            os.write(write, number)
            os.kill(os.getppid(), signal.SIGUSR1)

    child(answer)

    def step(number):
        ours.send(b"x" * (number % 3000 + 1))
        os.read(read, 4096)
        signal.sigwait([signal.SIGUSR1])

    until(end, step)


def work_of(number):
    return sum(len(line) for line in open(__file__)) + number


def workers(end):
    """A pool whose workers end after five pieces of work."""
    reset = functools.partial(signal.signal, signal.SIGTERM, signal.SIG_DFL)
    with multiprocessing.get_context("fork").Pool(3, reset, maxtasksperchild=5) as pool:
        until(end, lambda _: pool.map(work_of, range(30), 2))


def posix_ipc(end):
    """POSIX message queues and shared memory; the IPC namespace ends with the load."""
    own_namespace(CLONE_NEWIPC)

    def step(number):
        name = f"/kmt-load-{number}".encode()
        queue = done(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, struct.pack("8q", 0, 10, 512, 0, 0, 0, 0, 0)), "mq_open")
        text = ctypes.create_string_buffer(512)
        for n in range(8):
            done(libc.mq_send(queue, b"x" * 60 * n, 60 * n, n), "mq_send")
        for _ in range(8):
            done(libc.mq_receive(queue, text, ctypes.c_size_t(512), None), "mq_receive")
        os.close(queue)
        libc.mq_unlink(name)
        path = f"/dev/shm/kmt-load-{os.getpid()}"
        fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        os.unlink(path)
        os.ftruncate(fd, 1 << 18)
        with mmap.mmap(fd, 1 << 18) as shared:
            shared[::4096] = b"x" * 64
        os.close(fd)

    until(end, step)


def filters(_):
    """Sockets with a filter that lets packets of one length pass."""
    sink, source = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
    code = ctypes.create_string_buffer(struct.pack("HBBI" * 4, 0x80, 0, 0, 0, 0x15, 0, 1, 108, 6, 0, 0, 0xFFFF, 6, 0, 0, 0))
    sink.setsockopt(socket.SOL_SOCKET, 26, struct.pack("H6xQ", 4, ctypes.addressof(code)))  # SO_ATTACH_FILTER
    sink.bind(("127.0.0.1", 0))
    for size in (99, 100, 101):
        source.sendto(b"x" * size, sink.getsockname())
    sink.recv(1000)
    sink.close()
    source.close()


def keys(_):
    """Keys and a keyring that are added, read and removed."""
    ring = syscall("add_key", ADD_KEY, b"keyring", b"kmt-load", None, 0, PROCESS_KEYRING)
    for n in range(20):
        key = syscall("add_key", ADD_KEY, b"user", f"kmt-load-{n}".encode(), b"x" * 50 * (n + 1), 50 * (n + 1), ring)
        syscall("KEYCTL_READ", KEYCTL, 11, key, ctypes.create_string_buffer(1000), 1000)
    syscall("KEYCTL_UNLINK", KEYCTL, KEYCTL_UNLINK, ring, PROCESS_KEYRING)


def sessions(end):
    """A server with sessions of 1 to 5 s: each has a timer, a socket pair and an entry of an epoll."""
    poll, open_ones = select.epoll(), []

    def step(_):
        pair, timer = socket.socketpair(), syscall("timerfd_create", (283, 85), 1, 0)
        poll.register(pair[0], select.EPOLLIN)
        open_ones.append((time.monotonic() + random.uniform(1, 5), pair, timer))
        now = time.monotonic()
        for one in [one for one in open_ones if one[0] < now]:
            open_ones.remove(one)
            poll.unregister(one[1][0])
            for end_of_pair in one[1]:
                end_of_pair.close()
            os.close(one[2])
        time.sleep(0.02)

    until(end, step)


def batches(end):
    """A job that opens 100 files a second and closes all of them every 4 s."""
    def job(_):
        kept, begin = [], time.monotonic()
        while time.monotonic() < min(end, begin + 4):
            kept += [open(__file__) for _ in range(5)]
            time.sleep(0.05)
        for file in kept:
            file.close()

    until(end, job)


def curl(end):
    """A client that is a command, with three requests over one connection."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=TREE))
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    until(end, lambda _: run(f"curl -s {address}/json/ {address}/socket.py {address}/missing"))


BATCH = ("(seq 1 200 | sed 's/.*/route add 10.1.&.0\\/24 dev lo/'; "
         "seq 1 200 | sed 's/.*/neigh add 10.2.0.& lladdr 2:0:0:0:0:1 dev va/'; "
         "seq 1 50 | sed 's/.*/rule add pref & table &/') > batch")
ROUTES = ("ip link set lo up; ip link add va type veth peer name vb; ip link set va up; ip -batch batch; "
          "ip route show table all; ip neigh flush all; ip neigh show nud all")
SCRIPT = """const w = require("worker_threads"), fs = require("fs");
for (let i = 0; i < 2; i++) new w.Worker("Array.from({length: 99999}, (_, i) => String(i)).sort()", {eval: true});
fs.readdir("/etc", (e, l) => l.forEach(n => fs.stat("/etc/" + n, () => 0)))"""
CERTIFICATE = ("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout k -out c -subj /CN=kmt; "
               "openssl x509 -in c -text; openssl verify -CAfile c c; openssl dgst -sha256 -sign k c | cksum")
CHROOT = 'mount --bind / m; chroot m sh -c "ls -l /etc; id; sort /etc/passwd"; umount -l m'
TERMINALS = ("export TMUX_TMPDIR=.; tmux -f /dev/null new-session -d 'ls -l /usr/lib; sleep 0.1' "
             "\\; split-window 'seq 3000'; sleep 0.2")

LOADS = {
    "memory": python(memory), "filters": python(filters), "keys": python(keys), "asyncio": Load(asyncio_server, "ip"),
    "ping_pong": Load(ping_pong), "workers": Load(workers), "posix_ipc": Load(posix_ipc), "sessions": Load(sessions),
    "batches": Load(batches), "curl": Load(curl, "curl"), "certificates": shell(CERTIFICATE, "openssl"),
    "routes": shell(f"unshare -n sh -c '{ROUTES}'", "unshare ip", BATCH), "node": shell(f"node -e '{SCRIPT}'", "node"),
    "chroot": shell(f"unshare -m sh -c '{CHROOT}'", "unshare chroot", "mkdir m"), "tmux": shell(TERMINALS, "tmux"),
    "user_namespaces": shell("unshare -Urm sh -c 'mount -t tmpfs none /mnt; touch /mnt/x; id'; unshare -UrT true", "unshare"),
}

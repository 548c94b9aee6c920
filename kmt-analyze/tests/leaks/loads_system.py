"""Ordinary loads on tasks, namespaces, sockets and IPC."""
import ctypes, functools, http.server, os, pty, signal, socket, struct, subprocess, sys, threading, time, urllib.request

from loads_common import TREE, Load, python, quiet, run, shell, until

libc = ctypes.CDLL(None, use_errno=True)
CONTAINER = ("mount -t tmpfs none /mnt; cp -r " + TREE + "/json /mnt; ip link set lo up; ls /proc > /mnt/list; "
             "(sleep 0.01 & sort /mnt/list > /mnt/sorted; wait)")


def short_threads(_):
    threads = [threading.Thread(target=lambda: None) for _ in range(50)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def inotify(_):
    fd = libc.inotify_init1(0)
    watches = [libc.inotify_add_watch(fd, path.encode(), 2) for path in ("/tmp", "/etc", "/usr", ".")]
    for watch in watches[:2]:
        libc.inotify_rm_watch(fd, watch)
    os.close(fd)


def ipc(_):
    """System V objects; the loads' own IPC namespace ends with the process."""
    shm, sem, queue = libc.shmget(0, 65536, 0o600), libc.semget(0, 4, 0o600), libc.msgget(0, 0o600)
    for n in range(5):
        libc.msgsnd(queue, struct.pack("q", 1) + b"x" * 100 * n, 100 * n, 0)
    libc.shmctl(shm, 0, None)
    libc.semctl(sem, 0, 0)
    libc.msgctl(queue, 0, None)


def ipc_load(end):
    libc.unshare(0x8000000)  # CLONE_NEWIPC
    until(end, ipc)


def datagrams(_):
    with socket.socket(type=socket.SOCK_DGRAM) as sink, socket.socket(type=socket.SOCK_DGRAM) as udp:
        sink.bind(("127.0.0.1", 0))
        for n in range(50):
            udp.sendto(b"y" * (n * 29 % 1400), sink.getsockname())
            sink.recv(1500)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Prints nothing."""


def web(end):
    """A web server with a thread a request, and one client."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=TREE))
    server.handle_error = lambda *_: None  # the end of the load closes a connection
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    pages = ["", "json/", "json/decoder.py", "socket.py"]
    until(end, lambda n: urllib.request.urlopen(address + pages[n % 4]).read())
    server.shutdown()


def pool(end):
    """A server with eight workers that start once; each request is a message to one of them."""
    workers = []
    for _ in range(8):
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            ours.close()
            for other, _ in workers:
                other.close()
            while request := theirs.recv(4096):
                with open("/etc/passwd") as file:
                    theirs.sendall(request + file.read(100).encode())
            os._exit(0)
        theirs.close()
        workers.append((ours, pid))

    def step(number):
        ours = workers[number % 8][0]
        ours.sendall(b"x" * 100)
        ours.recv(4096)

    until(end, step)
    for ours, pid in workers:
        ours.close()
        os.waitpid(pid, 0)


def cron(end):
    """A command each second."""
    while time.monotonic() < end:
        run("date > now; df > disks; find /etc -newer now | head -n 3")
        time.sleep(max(0, min(1, end - time.monotonic())))


def timers(_):
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    for _ in range(20):
        signal.pause()
    signal.setitimer(signal.ITIMER_REAL, 0)


def terminals(_):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("sh", ["sh", "-c", "echo x; stty size; ls /"])
    try:
        while os.read(fd, 4096):
            pass
    except OSError:
        pass  # the end of the terminal
    os.close(fd)
    os.waitpid(pid, 0)


def remove_cgroup(folder):
    for _ in range(100):
        try:
            os.rmdir(folder)
            return
        except OSError:
            time.sleep(0.05)  # the end of the load left a command in it


def services(number):
    """A command in a cgroup of its own, which is removed after it."""
    root = "/sys/fs/cgroup/unified" if os.path.exists("/sys/fs/cgroup/unified/cgroup.procs") else "/sys/fs/cgroup"
    folder = f"{root}/kmt-load-{os.getpid()}-{number}"
    os.mkdir(folder)
    try:
        run(f"echo $$ > {folder}/cgroup.procs; ls -l /etc; true")
    finally:
        remove_cgroup(folder)


LOADS = {
    "mounts": shell("mkdir -p m; unshare -m sh -c 'for n in 1 2 3 4 5; do mount -t tmpfs none m; touch m/x; umount m; done'",
                    "unshare"),
    "containers": shell(f"unshare -mnpuif --mount-proc sh -c '{CONTAINER}'", "unshare ip"),
    "links": shell("unshare -n sh -c 'for n in 1 2 3 4; do ip link add a$n type veth peer name b$n; "
                   "ip addr add 10.0.$n.1/24 dev a$n; ip link set a$n up; ip link del a$n; done'", "unshare ip"),
    "pipes": shell("yes | head -c 20000000 | wc -c; seq 100000 | tac | tail -n 1"),
    "packages": shell("dpkg -l; apt-cache stats; dpkg -L bash", "dpkg apt-cache"),
    "ps": shell("ps axuww; ps -eLf; cat /proc/[0-9]*/maps /proc/[0-9]*/status"),
    "ptrace": shell("strace -f -o /dev/null sh -c '/bin/true; ls /'", "strace"),
    "users": shell("setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'id; ls /'", "setpriv"),
    "short_sleeps": shell("for n in 1 2 3 4 5 6; do sleep 0.0$n & done; wait"),
    "short_threads": python(short_threads), "inotify": python(inotify), "datagrams": python(datagrams), "timers": python(timers),
    "terminals": python(terminals), "services": python(services), "sysv_ipc": Load(ipc_load), "web": Load(web), "pool": Load(pool),
    "cron": Load(cron),
}

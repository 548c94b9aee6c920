"""More ordinary loads on files, on which no rule was tuned."""
import ctypes, fcntl, os, random, shutil, sqlite3, struct

from loads_common import TREE, Load, run, shell, until
from made_common import CLONE_NEWNS, MNT_DETACH, done, libc, own_namespace, syscall
from more_common import child

SOURCES = 12
IN_IGNORED, IGNORED = 0x8000, struct.Struct("iIII")


def sources():
    """A program of some files with a Makefile."""
    calls = "".join(f"int f{n}(int); " for n in range(SOURCES))
    with open("main.c", "w") as file:
        file.write(f"{calls} int main(void) {{ return f0(1) + f{SOURCES - 1}(2) > 1000; }}\n")
    for n in range(SOURCES):
        with open(f"f{n}.c", "w") as file:
            file.write("#include <stdio.h>\n")
            file.write(f"int f{n}(int x) {{ for (int i = 0; i < {n}; i++) x += x * i; return x; }}\n")
    with open("Makefile", "w") as file:
        objects = " ".join(f"f{n}.o" for n in range(SOURCES))
        file.write(f"program: main.o libf.a\n\tcc -o $@ $^\nlibf.a: {objects}\n\tar rcs $@ $^\n")
        file.write("clean:\n\trm -f *.o *.a program\n")


def sqlite_readers(end):
    """A database with a write-ahead log, one writer and two readers."""
    database = sqlite3.connect("wal.db")
    database.execute("pragma journal_mode = wal")
    database.execute("create table t (a integer primary key, b text)")
    database.commit()

    def read():
        while True:
            reader = sqlite3.connect("wal.db", timeout=10)
            reader.execute("select count(*), max(b) from t").fetchone()
            reader.close()

    for _ in range(2):
        child(read)

    def write(number):
        database.executemany("insert into t (b) values (?)", [(str(n) * 5,) for n in range(50)])
        database.execute("delete from t where a < ?", (number * 50 - 2000,))
        database.commit()

    until(end, write)


def tmpfs(end):
    """Files of up to 1 MiB on tmpfs; 100 of them exist at a time."""
    own_namespace(CLONE_NEWNS)
    os.mkdir("t")
    done(libc.mount(b"none", b"t", b"tmpfs", 0, b"size=256m"), "mount")

    def step(number):
        with open(f"t/{number % 100}", "wb") as file:
            file.write(bytes(random.randrange(1 << 20)))
        if number % 3 == 0:
            os.truncate(f"t/{number % 100}", 4096)

    try:
        until(end, step)
    finally:
        libc.umount2(b"t", MNT_DETACH)


def maildir(end):
    """Mail that is delivered, read, and removed when there are 200."""
    for name in ("tmp", "new", "cur"):
        os.mkdir(name)

    def step(number):
        with open(f"tmp/{number}", "w") as file:
            file.write("text of a mail\n" * (number % 400))
            file.flush()
            os.fsync(file.fileno())
        os.rename(f"tmp/{number}", f"new/{number}")
        os.rename(f"new/{number}", f"cur/{number}:2,S")
        if number >= 200:
            os.unlink(f"cur/{number - 200}:2,S")

    until(end, step)


def watched_tree(end):
    """A program that watches a tree, as a server that reloads what changed."""
    fd = done(libc.inotify_init1(0), "inotify_init1")

    def step(number):
        os.mkdir("w")
        watch = done(libc.inotify_add_watch(fd, b"w", 0xFFF), "inotify_add_watch")
        for n in range(number % 20):
            with open(f"w/{n}", "w") as file:
                file.write("x")
        shutil.rmtree("w")
        while not os.read(fd, 1 << 16).endswith(IGNORED.pack(watch, IN_IGNORED, 0, 0)):
            pass  # the end of the folder removes the watch, which is the last event

    until(end, step)


def aio_reads(end):
    """Reads by io_submit, 16 at a time; a context of each 500."""
    run("head -c 1000000 /dev/urandom > read")
    fd, buffer = os.open("read", os.O_RDONLY), ctypes.create_string_buffer(16 * 4096)

    def request(n):
        place = ctypes.addressof(buffer) + n * 4096
        return ctypes.create_string_buffer(struct.pack("QIIHhIQQqQII", n, 0, 0, 0, 0, fd, place, 4096, n * 8192, 0, 0, 0))

    submit = [request(n) for n in range(16)]
    requests, events = (ctypes.c_void_p * 16)(*map(ctypes.addressof, submit)), ctypes.create_string_buffer(16 * 32)

    def step(_):
        context = ctypes.c_ulong()
        syscall("io_setup", (206, 0), 64, ctypes.byref(context))
        for _ in range(500):
            syscall("io_submit", (209, 2), context, 16, requests)
            syscall("io_getevents", (208, 4), context, 16, 16, events, None)
        syscall("io_destroy", (207, 1), context)

    until(end, step)


def locks(end):
    """Four processes that lock parts of one file, and all of it."""
    def lock():
        with open("locked", "a+") as file:
            while True:
                for start in range(20):
                    fcntl.lockf(file, fcntl.LOCK_EX, 10, start * 20)
                fcntl.lockf(file, fcntl.LOCK_UN)
                fcntl.flock(file, fcntl.LOCK_EX)
                fcntl.flock(file, fcntl.LOCK_UN)

    for _ in range(3):
        child(lock)
    until(end, lambda _: run("flock locked true"))


def opened(end):
    """A program that has the 400 files open that it used last."""
    kept = []

    def step(number):
        name = f"opened-{number * 7919 % 3000}"
        kept.append(open(name, "a"))
        if len(kept) > 400:
            kept.pop(0).close()

    until(end, step)


CONTROL = "Package: kmt\\nVersion: 1\\nArchitecture: all\\nMaintainer: kmt <kmt@localhost>\\nDescription: x\\n"
PACKAGE = (f"mkdir -p root/DEBIAN root/usr/share; cp -r {TREE}/json {TREE}/email root/usr/share; "
           f"printf '{CONTROL}' > root/DEBIAN/control")
ARCHIVE = f"zip -qr z.zip {TREE}/json {TREE}/email {TREE}/asyncio; unzip -q z.zip -d z; rm -rf z z.zip"
BACKUP = ("rm -rf b.3; mv b.2 b.3; mv b.1 b.2; cp -al b.0 b.1; "
          "for f in b.0/json/*.py; do cp --remove-destination $f new; mv new $f; done")
PATCH = ("cp -r a b; for f in b/json/*.py; do sed -i s/self/this/g $f; done; diff -ru a b > p; "
         "cp -r a c; patch -s -p1 -d c < p; diff -r b c; rm -rf b c")
LAYERS = ("mount -t tmpfs none m; mkdir m/u m/w m/o; "
          f"mount -t overlay none -o lowerdir={TREE}/json,upperdir=m/u,workdir=m/w m/o; cd m/o; "
          "for f in *.py; do echo >> $f; done; rm -f decoder.py; ls -l; cd ../..; umount m/o")

LOADS = {
    "make": Load(lambda end: until(end, lambda _: run("make -s -j2 && ./program; make -s clean")), "make cc ar", sources),
    "zip": shell(ARCHIVE, "zip unzip"),
    "hard_links": shell(BACKUP, "", f"mkdir b.0 b.1 b.2 b.3; cp -r {TREE}/json {TREE}/email b.0"),
    "patches": shell(PATCH, "patch diff", f"mkdir a; cp -r {TREE}/json a"),
    "deb": shell("dpkg-deb -Zgzip -b root x.deb; dpkg-deb -c x.deb; dpkg-deb -x x.deb out; rm -rf out", "dpkg-deb", PACKAGE),
    "layers": shell(f"unshare -m sh -c '{LAYERS}'", "unshare", "mkdir m"),
    "sqlite_readers": Load(sqlite_readers), "tmpfs_files": Load(tmpfs), "maildir": Load(maildir),
    "watched_tree": Load(watched_tree), "aio_reads": Load(aio_reads), "locks": Load(locks, "flock"),
    "opened_files": Load(opened),
}

"""Ordinary loads on files and folders."""
import mmap, os, shutil, subprocess, tempfile

from loads_common import TREE, Load, python, quiet, run, shell, until

LINKS, FOLDERS = 40_000, 100
IMAGE = "truncate -s 64M image; mkfs.ext4 -q -F image"


def make_links():
    """Links of more than 60 bytes: ext4 has their text in a block of its own."""
    for folder in range(FOLDERS):
        os.makedirs(f"links/{folder}")
        for link in range(LINKS // FOLDERS):
            os.symlink("/" + "target" * 12 + str(link), f"links/{folder}/{link}")
    run("sync; echo 2 > /proc/sys/vm/drop_caches")


def rename(_):
    os.makedirs("a", exist_ok=True)
    os.makedirs("b", exist_ok=True)
    for n in range(200):
        with open(f"a/{n}", "w") as file:
            file.write("x")
        os.rename(f"a/{n}", f"b/{n}")
        os.rename(f"b/{n}", f"b/0")


def small_files(_):
    os.mkdir("small")
    for n in range(1000):
        with open(f"small/{n}", "w") as file:
            file.write("x" * (n % 5000))
    shutil.rmtree("small")


def attributes(number):
    """Extended attributes of a file, some in its inode, some in a block."""
    with open("attributes", "w"):
        for n in range(10):
            os.setxattr("attributes", f"user.{n}", b"x" * (number * 37 % 300 + 1))
        for n in range(10):
            os.removexattr("attributes", f"user.{n}")
    os.unlink("attributes")


def maps(number):
    with tempfile.TemporaryFile(dir=".") as file:
        file.truncate(1 << 20)
        with mmap.mmap(file.fileno(), 1 << 20) as of_file, mmap.mmap(-1, (number % 64 + 1) << 12) as anonymous:
            of_file[:: 1 << 16] = b"x" * 16
            anonymous[0] = 1


def log_rotation(end):
    """A service's log: lines are appended, and at a size it is compressed and begun again."""
    def step(number):
        with open("log", "a") as log:
            for line in range(100):
                log.write(f"{number} {line} a line of the log, with some text that is always the same\n")
        if os.path.getsize("log") > 1 << 20:
            run("rm -f log.5.gz; for n in 4 3 2 1; do mv log.$n.gz log.$((n+1)).gz; done; mv log log.1; gzip log.1")

    until(end, step)


def tail(end):
    open("followed", "w").close()
    follower = subprocess.Popen(["tail", "-f", "followed"], **quiet)

    def step(number):
        with open("followed", "a") as file:
            file.write(f"line {number}\n")
        if number % 10_000 == 9_999:
            os.truncate("followed", 0)

    try:
        until(end, step)
    finally:
        follower.kill()
        follower.wait()


def missing_names(number):
    """Looks for files that do not exist, as a search path does; the same 20,000 names."""
    for n in range(1000):
        os.path.exists(f"missing-{(number * 1000 + n) % 20_000}")


GIT = "git -c user.name=kmt -c user.email=kmt@localhost"
GIT_ROUND = (f"rm -rf r c; git init -q r; cp -r {TREE}/json {TREE}/email {TREE}/asyncio r; cd r; "
             f"{GIT} add .; {GIT} commit -qm one; for f in json/*.py; do echo >> $f; done; "
             f"{GIT} commit -qam two; {GIT} gc -q; cd ..; git clone -q --no-local r c")
READ_LINKS = "ls -lR links; find links -type l -exec readlink {} +"
LARGE = "seq 1 2000000 | awk '{print ($1 * 7919) % 1000003, $1}' > large"

LOADS = {
    "ls_proc_sys": shell("ls -lR /proc /sys"),
    "symbolic_links": Load(lambda end: until(end, lambda _: run(READ_LINKS)), "", make_links),
    "cold_find": shell("echo 3 > /proc/sys/vm/drop_caches; find /usr/lib /usr/share -xdev -ls; find /usr/lib -xdev | head -n 5000"),
    "git": shell(GIT_ROUND, "git"),
    "sort": shell("sort -S 8M -T . large > sorted; sort -n -u large | tail -n 1", "", LARGE),
    "compress": shell("gzip -k large; xz -0 -k large; gzip -d < large.gz | cksum; rm -f large.gz large.xz", "gzip xz", LARGE),
    "text": shell("awk '{s[$1 % 100] += $2} END {for (k in s) print k, s[k]}' large; "
                  "perl -ne '$n{length $_}++; END {print %n}' large; "
                  "sed 's/1/one/g' large | tr a-z A-Z | cut -c 1-8 | uniq -c | wc -l", "awk perl sed", LARGE),
    "fallocate": shell("fallocate -l 64M f; fallocate -p -o 1M -l 8M f; truncate -s 4K f; truncate -s 1G f; rm f", "fallocate"),
    "directories": shell("for a in 1 2 3 4 5 6 7 8; do mkdir -p d/$a/b/c/d/e/f/g; done; cp -r d e; find d e; rm -rf d e"),
    "loop_mount": shell("mkdir -p m; unshare -m sh -c 'mount -o loop image m; cp -r " + TREE + "/json m; rm -rf m/json; umount m'",
                        "unshare mkfs.ext4 losetup", IMAGE),
    "rename": python(rename), "small_files": python(small_files), "attributes": python(attributes), "maps": python(maps),
    "missing_names": python(missing_names), "log_rotation": Load(log_rotation, "gzip"), "tail": Load(tail, "tail"),
}

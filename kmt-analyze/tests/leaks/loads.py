#!/usr/bin/env python3
"""Ordinary work in which nothing leaks: loads.py NAME SECONDS

It prepares the work, prints `ready`, and begins when its standard input has a line or ends. `loads.py --list` prints
one line per load: its group, its name and the programs that it needs.
"""
import os, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, threading, time

sys.dont_write_bytecode = True
import loads_files, loads_lifetimes, loads_system
import more_loads_files, more_loads_system
from loads_common import TREE, Load, quiet, shell, until

MODULES = "json http.client xml.dom asyncio unittest email decimal sqlite3 logging.config"


def sqlite(end):
    database = sqlite3.connect("x.db")
    database.execute("create table t (a integer primary key, b text)")

    def step(number):
        database.executemany("insert into t (b) values (?)", [(str(n) * 9,) for n in range(500)])
        database.execute("delete from t where a < ?", (number * 400,))
        database.execute("select count(*), max(b) from t").fetchone()
        database.commit()

    until(end, step)


def sockets(end):
    listener = socket.create_server(("127.0.0.1", 0))

    def answer():
        while True:
            try:
                with listener.accept()[0] as connection:
                    connection.sendall(connection.recv(4096))
            except OSError:
                return

    threading.Thread(target=answer, daemon=True).start()

    def ask(_):
        with socket.create_connection(listener.getsockname()) as connection:
            connection.sendall(b"x" * 900)
            connection.recv(4096)

    until(end, ask)


def compile_c(end):
    with open("x.c", "w") as file:
        file.write("#include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n")
        for n in range(300):
            file.write(f'double f{n}(double x) {{ for (int i = 0; i < {n}; i++) x += x * i; printf("%f", x); return x; }}\n')
    until(end, lambda _: subprocess.run(["cc", "-O2", "-c", "x.c", "-o", "x.o"], check=False, **quiet))


LOADS = {
    "idle": Load(lambda end: time.sleep(max(0, end - time.monotonic()))),
    "find": shell(f"find {TREE} /proc/self -ls"),
    "grep": shell(f"grep -r kmalloc {TREE}"),
    "tar": shell(f"tar cf x.tar {TREE}", "tar"),
    "untar": shell("mkdir u; tar xf y.tar -C u; rm -rf u", "tar", f"tar cf y.tar {TREE}"),
    "fork_storm": shell("for i in 1 2 3 4 5 6 7 8; do (/bin/true; /bin/true) & done; wait"),
    "imports": shell(f"{sys.executable} -c 'import {MODULES.replace(' ', ', ')}'"),
    "sqlite": Load(sqlite),
    "sockets": Load(sockets),
    "dd": shell("dd if=/dev/zero of=x bs=64k count=2000 conv=fsync; dd if=x of=/dev/null bs=64k; rm x"),
    "compile": Load(compile_c, "cc"),
    **loads_files.LOADS,
    **loads_system.LOADS,
    **loads_lifetimes.LOADS,
}
GROUPS = {"loads": LOADS, "more-loads": {**more_loads_files.LOADS, **more_loads_system.LOADS}}
ALL = {name: load for loads in GROUPS.values() for name, load in loads.items()}


def end_all(folder):
    """Ends the commands of this load, which are its process group, and removes its folder."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    os.chdir("/")
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            break
        time.sleep(0.1)  # a command that still writes there


def main():
    if sys.argv[1] == "--list":
        for group, loads in GROUPS.items():
            for name, load in loads.items():
                print(group, name, " ".join(load.needs), sep="\t")
        return
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    load, folder = ALL[sys.argv[1]], tempfile.mkdtemp(prefix="kmt-load-", dir="/var/tmp")  # on a disk, other than /tmp
    try:
        os.chdir(folder)
        load.prepare()
        print("ready", flush=True)
        sys.stdin.readline()
        load.work(time.monotonic() + float(sys.argv[2]))
    finally:
        end_all(folder)


main()

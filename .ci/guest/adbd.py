"""A stand-in for Android's adbd, for `.ci/adb`: shells of this machine over the protocol of adb (protocol.txt and
shell_service in Android's packages/modules/adb). adbd.py PORT SHELL..."""
import os
import select
import socket
import struct
import subprocess
import sys

CNXN, OPEN, OKAY, WRTE, CLSE = (int.from_bytes(name, "little") for name in (b"CNXN", b"OPEN", b"OKAY", b"WRTE", b"CLSE"))
STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = range(5)
PAYLOAD = 64 << 10


class Device:
    def __init__(self, line, shell):
        self.line, self.shell = line, shell
        self.process = None

    def send(self, command, arg0, arg1, data=b""):
        head = struct.pack("<6I", command, arg0, arg1, len(data), sum(data) & 0xffffffff, command ^ 0xffffffff)
        self.line.sendall(head + data)

    def exactly(self, length):
        data = b""
        while len(data) < length:
            part = self.line.recv(length - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def packet(self, kind, data):
        self.waiting.append(bytes([kind]) + struct.pack("<I", len(data)) + data)

    def flush(self):
        if self.may_write and self.waiting:
            self.send(WRTE, 1, self.remote, self.waiting.pop(0))
            self.may_write = False

    def open(self, service, remote):
        print("service", service, flush=True)
        self.remote, self.may_write, self.waiting, self.packets = remote, True, [], b""
        self.process = subprocess.Popen(self.shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.streams = {self.process.stdout: STDOUT, self.process.stderr: STDERR}
        self.is_ended = False
        self.send(OKAY, 1, remote)

    def stdin(self, data):
        self.packets += data
        while len(self.packets) >= 5:
            kind, length = struct.unpack_from("<BI", self.packets)
            if len(self.packets) < 5 + length:
                return
            data, self.packets = self.packets[5:5 + length], self.packets[5 + length:]
            try:
                if kind == STDIN:
                    self.process.stdin.write(data)
                    self.process.stdin.flush()
                elif kind == CLOSE_STDIN:
                    self.process.stdin.close()
            except (BrokenPipeError, ValueError):
                pass

    def message(self):
        command, arg0, arg1, length, _, _ = struct.unpack("<6I", self.exactly(24))
        data = self.exactly(length)
        if command == CNXN:
            self.send(CNXN, 0x01000001, PAYLOAD, b"device::ro.product.name=standin;features=shell_v2,cmd")
        elif command == OPEN:
            self.open(data.rstrip(b"\0").decode(), arg0)
        elif command == WRTE:
            self.send(OKAY, 1, self.remote)
            self.stdin(data)
        elif command == OKAY:
            self.may_write = True
        elif command == CLSE and self.process:
            self.end()

    def end(self):
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        self.process = None

    def output(self, ready):
        for stream, kind in list(self.streams.items()):
            if stream in ready:
                data = os.read(stream.fileno(), PAYLOAD // 2)
                if data:
                    self.packet(kind, data)
                else:
                    del self.streams[stream]
        if not self.streams and not self.is_ended:
            self.is_ended = True
            self.packet(EXIT, bytes([self.process.wait() & 0xff]))
        if self.is_ended and not self.waiting and self.may_write:
            self.send(CLSE, 1, self.remote)
            self.end()

    def run(self):
        while True:
            streams = [self.line, *(self.streams if self.process and not self.waiting else ())]
            ready, _, _ = select.select(streams, [], [], 1)
            if self.line in ready:
                self.message()
            if self.process:
                self.output(ready)
                self.flush()


def main():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    while True:
        line, _ = listener.accept()
        device = Device(line, sys.argv[2:])
        try:
            device.run()
        except (EOFError, ConnectionError):
            if device.process:
                device.end()


main()

"""An agent with many clients: what it takes of its node's memory is bounded, and one that is slow holds up nobody. The clients are this test's own."""
import glob
import hashlib
import os
import resource
import selectors
import socket
import struct
import threading
import time
import unittest

from command import CommandTest

MIB = 1 << 20
ATTACH, OPEN, READ, WRITE, PUT, APPEND, GET, BEGIN = 1, 2, 4, 5, 14, 15, 16, 28
CREATE = 2
# Of requests and answers on their way, and of those that take several.
CREDITS = 64 * MIB


def at_once(work, clients):
    """work(client, i), each in a thread of its own."""
    threads = [threading.Thread(target=work, args=(client, i)) for i, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Client:
    """What docs/protocol.md says, over the socket of the node."""

    def __init__(self, registry, directory):
        [note] = glob.glob(os.path.join(registry, "n1.*.agent"))
        with open(note) as file:
            note = [line.split() for line in file]
        with open(os.path.join(registry, "secret")) as file:
            secret = bytes.fromhex(file.read().strip())
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(100)
        self.socket.connect("\0" + next(words[2] for words in note if words[:2] == ["at", "unix"]))
        identity = bytes.fromhex(next(words[1] for words in note if words[0] == "id"))
        mine = os.urandom(32)
        agreed = struct.pack("<II", 2, 7)
        self.socket.sendall(b"hfgreet1" + agreed + mine)
        theirs = self.receive(80)[16:48]
        proof = hashlib.blake2b(b"c" + agreed + identity + mine + theirs, digest_size=32, key=secret)
        self.socket.sendall(proof.digest())
        assert self.receive(8) == b"hwelcome"
        self.number = -1
        self.tell(BEGIN, quiet=1, bulk=os.urandom(16))
        self.ask(ATTACH, name=directory, flags=0o600)

    def close(self):
        self.socket.close()

    def receive(self, count):
        came = b""
        while len(came) < count:
            some = self.socket.recv(count - len(came))
            if not some:
                raise ConnectionResetError
            came += some
        return came

    def request(self, operation, name="", flags=0, handle=0, bulk=b"", quiet=0, offset=0, length=0):
        self.number += 1
        head = struct.pack("<IHHIIIIQQ", self.number, operation, flags, handle, len(name), len(bulk), quiet, offset, length)
        return head + name.encode() + bulk

    def tell(self, *arguments, **options):
        self.socket.sendall(self.request(*arguments, **options))

    def answer(self):
        number, error, kind, _, sentence, bulk, _, value, other, _ = struct.unpack("<IiHHIIIQQQ", self.receive(48))
        said, content = self.receive(sentence), self.receive(bulk)
        assert number == self.number, (number, self.number)
        assert kind == 0, (error, said)
        return value, other, content

    def ask(self, *arguments, **options):
        self.tell(*arguments, **options)
        return self.answer()

    def open(self, name):
        return self.ask(OPEN, name=name, flags=CREATE)[0]


class AgentsMemory(CommandTest):
    CLIENTS = 200

    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_AGENTS"] = self.path("agents")
        self.addCleanup(lambda: self.holdfast("agents", "stop", expect=None))
        os.mkdir(self.path("disk"))
        self.holdfast("agents", "start", "--node", "n1", self.path("disk"))
        self.process = self.agent_of("n1")

    def memory(self, what="VmHWM"):
        with open(f"/proc/{self.process}/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(what + ":"))

    def counts(self):
        """Its threads, and its processor time in ticks."""
        with open(f"/proc/{self.process}/stat") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return int(words[17]), int(words[11]) + int(words[12])

    def clients(self, count):
        made = []
        for _ in range(count):
            made.append(Client(self.path("agents"), self.path("disk")))
            self.addCleanup(made[-1].close)
        return made

    @staticmethod
    def send_side_by_side(clients, requests):
        """As much of each request as the agent takes."""
        rest = {client.socket: memoryview(request) for client, request in zip(clients, requests)}
        with selectors.DefaultSelector() as wait:
            for one in rest:
                one.setblocking(False)
                wait.register(one, selectors.EVENT_WRITE)
            while ready := wait.select(timeout=0.5):
                for key, _ in ready:
                    try:
                        rest[key.fileobj] = rest[key.fileobj][key.fileobj.send(rest[key.fileobj]):]
                    except ConnectionError:  # it has been slow already
                        rest[key.fileobj] = b""
                    if not rest[key.fileobj]:
                        wait.unregister(key.fileobj)

    def test_many_clients_that_write_and_read_take_little_together(self):
        clients = self.clients(self.CLIENTS)
        idle = self.memory("VmRSS")
        content = os.urandom(MIB)

        def work(client, i):
            handle = client.open(f"o{i}")
            for _ in range(3):
                client.ask(WRITE, handle=handle, bulk=content)
                failed.discard(i) if client.ask(READ, handle=handle, length=MIB)[2] == content else None
        failed = set(range(len(clients)))
        at_once(work, clients)
        self.assertEqual(failed, set())
        self.assertLess(self.memory(), idle + CREDITS)

    def test_many_clients_that_stop_in_mid_request_take_little_and_hold_up_nobody(self):
        clients = self.clients(self.CLIENTS)
        [fast] = self.clients(1)
        idle = self.memory("VmRSS")
        handles = [client.open(f"o{i}") for i, client in enumerate(clients)]
        content = os.urandom(MIB)
        self.send_side_by_side(clients, [client.request(WRITE, handle=handle, bulk=content)[:-1] for client, handle in zip(clients, handles)])
        handle = fast.open("fast")
        for i in range(8):
            fast.ask(WRITE, handle=handle, bulk=content, offset=i * MIB)
            self.assertEqual(fast.ask(READ, handle=handle, length=MIB, offset=i * MIB)[2], content)
        self.assertLess(self.memory(), idle + CREDITS)

    def test_clients_that_take_no_answers_hold_up_nobody(self):
        clients = self.clients(self.CLIENTS)
        content = os.urandom(MIB)
        [fast] = self.clients(1)
        handle = fast.open("o")
        fast.ask(WRITE, handle=handle, bulk=content)
        idle = self.memory("VmRSS")
        for client in clients:
            mine = client.open("o")
            client.tell(READ, handle=mine, length=MIB)
        for i in range(8):
            fast.ask(WRITE, handle=handle, bulk=content, offset=i * MIB)
            self.assertEqual(fast.ask(READ, handle=handle, length=MIB, offset=i * MIB)[2], content)
        self.assertLess(self.memory(), idle + CREDITS)

    def test_a_thousand_clients_cost_a_thread_and_few_pages_each_and_idle_nothing(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        count = int(os.environ.get("HOLDFAST_TEST_CLIENTS", 1000))
        if count + 100 > most:
            self.skipTest(f"{most} open files are too few")
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        before = self.memory("VmRSS")
        clients = self.clients(count)
        for i, client in enumerate(clients):
            client.ask(PUT, name=f"o{i}", bulk=b"content")
        (threads, ticks), began = self.counts(), time.monotonic()
        grown = self.memory("VmRSS") - before
        time.sleep(2)
        self.assertEqual(clients[-1].ask(GET, name="o0", length=100)[2], b"content")
        spent = (self.counts()[1] - ticks) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)
        if os.environ.get("HOLDFAST_TEST_CLIENTS"):
            print(f"{count} clients: {threads} threads, {grown / count / 1024:.1f} KiB each, {100 * spent:.2f} % of a processor idle")
        self.assertLess(threads, count + 20)
        self.assertLess(grown, count * 64 * 1024)
        self.assertLess(spent, 0.05)

    def test_many_clients_that_begin_large_objects_take_little_together(self):
        clients = self.clients(40)
        idle = self.memory("VmRSS")
        content, pieces = os.urandom(MIB), 4

        def work(client, i):
            ticket = client.ask(APPEND, name=f"m{i}", bulk=content, length=pieces * MIB)[0]
            for _ in range(pieces - 2):
                client.ask(APPEND, name=f"m{i}", bulk=content, handle=ticket)
            client.ask(PUT, name=f"m{i}", bulk=content, handle=ticket)
            got, ticket, size = b"", 0, 1
            while len(got) < size:
                size, ticket, piece = client.ask(GET, name=f"m{i}", handle=ticket, offset=len(got), length=8 * MIB)
                got += piece
            failed.discard(i) if got == content * pieces else None
        failed = set(range(len(clients)))
        at_once(work, clients)
        self.assertEqual(failed, set())
        self.assertLess(self.memory(), idle + CREDITS)


if __name__ == "__main__":
    unittest.main()

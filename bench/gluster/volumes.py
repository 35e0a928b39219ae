"""Volume files of GlusterFS, written by hand: what a server exports and what a client mounts.

A server exports its brick three times, from three directories: `plain` (a target of ours), `ec` (its part of Gluster's
disperse 4+2) and `afr` (of replica 3). Clients get the translators that glusterd would give a new volume."""

PORT = 24100
EXPORTS = ("plain", "ec", "afr")


def volume(name, kind, options=(), below=()):
    lines = [f"volume {name}", f"    type {kind}"]
    lines += [f"    option {key} {value}" for key, value in options]
    if below:
        lines.append("    subvolumes " + " ".join(below))
    return "\n".join(lines + ["end-volume", ""])


def server(brick, address):
    parts, access = [], []
    for export in EXPORTS:
        parts.append(volume(f"{export}-posix", "storage/posix", [("directory", f"{brick}/{export}")]))
        parts.append(volume(f"{export}-locks", "features/locks", below=[f"{export}-posix"]))
        parts.append(volume(export, "performance/io-threads", [("thread-count", 16)], [f"{export}-locks"]))
        access.append((f"auth.addr.{export}.allow", "*"))
    options = [("transport-type", "tcp"), ("transport.address-family", "inet"), ("transport.socket.bind-address", address),
               ("transport.socket.listen-port", PORT), *access]
    parts.append(volume("server", "protocol/server", options, EXPORTS))
    return "\n".join(parts)


def _clients(export, addresses):
    return [volume(f"client-{i}", "protocol/client",
                   [("transport-type", "tcp"), ("remote-host", address), ("remote-port", PORT), ("remote-subvolume", export),
                    ("ping-timeout", 42)])
            for i, address in enumerate(addresses)]


def _with_performance(parts, top):
    for name, kind in (("write-behind", "performance/write-behind"), ("open-behind", "performance/open-behind"),
                       ("md-cache", "performance/md-cache"), ("threads", "performance/io-threads")):
        parts.append(volume(name, kind, below=[top]))
        top = name
    return "\n".join(parts)


def plain(address):
    return _with_performance(_clients("plain", [address]), "client-0")


def disperse(addresses, redundancy):
    parts = _clients("ec", addresses)
    names = [f"client-{i}" for i in range(len(addresses))]
    parts.append(volume("redundant", "cluster/disperse", [("redundancy", redundancy)], names))
    return _with_performance(parts, "redundant")


def replicate(addresses):
    parts = _clients("afr", addresses)
    names = [f"client-{i}" for i in range(len(addresses))]
    parts.append(volume("redundant", "cluster/replicate", [("afr-pending-xattr", ",".join(names))], names))
    return _with_performance(parts, "redundant")

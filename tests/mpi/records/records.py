"""What is in a file of writer.c's records."""
import array
import os

MAGIC = 0x5CA1AB1E0DDBA11


def read(path, start=64):
    """Every record of the file as (rank, number, ordered, at, end); an error where anything else lies there. Zeros are gaps."""
    with open(path, "rb") as f:
        f.seek(start)
        content = f.read()
    if len(content) % 8:
        raise ValueError(f"{path}: {len(content)} bytes are no whole number of words")
    words = array.array("q", content)
    found, gaps, at = [], 0, 0
    while at < len(words):
        if words[at] == 0:
            gaps += 1
            at += 1
            continue
        if words[at] != MAGIC:
            raise ValueError(f"word {at} is {words[at]:#x}, not the beginning of a record")
        rank, number, count, ordered = words[at + 1:at + 5]
        body = words[at + 5:at + count]
        base = (rank * 1000003 + number) * 31
        if len(body) != count - 5 or any(body[i] != base + 5 + i for i in range(len(body))):
            raise ValueError(f"record {number} of rank {rank} at word {at} is damaged")
        found.append((rank, number, ordered, at, at + count))
        at += count
    return found, gaps


def check(path, ranks, expected, exactly=True, gaps_allowed=False):
    """`expected`: how many records of each rank must be there, from number 0 on."""
    found, gaps = read(path)
    if gaps and not gaps_allowed:
        raise ValueError(f"{gaps} words are zeros")
    last = [-1] * ranks
    for rank, number, _, at, _ in found:
        if number != last[rank] + 1:
            raise ValueError(f"rank {rank}: record {number} at word {at} comes after {last[rank]}")
        last[rank] = number
    for rank in range(ranks):
        have = last[rank] + 1
        if have < expected[rank] or (exactly and have != expected[rank]):
            raise ValueError(f"rank {rank}: {have} records, expected {expected[rank]}")
    # Ordered records of one call lie together, in rank order. (A gap: a rank that died in the call.)
    for i, (rank, number, ordered, _, end) in enumerate(found):
        if ordered and rank + 1 < ranks and i + 1 < len(found) and found[i + 1][3] == end and found[i + 1][:2] != (rank + 1, number):
            raise ValueError(f"ordered record {number} of rank {rank} is followed by {found[i + 1][:2]}")
    return len(found)


def leftovers(directory):
    return [name for name in os.listdir(directory) if name.endswith(".holdfast-records")]

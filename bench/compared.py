"""What `--compare messages` costs: jobs that are there twice, with it and with what is compared without it, files."""
from harness import Group, Row, Side
from places import Place
from workloads import remove_native

REPLICAS, MOST, MOST_MICROSECONDS = 2, 1.05, 0.15
MESSAGES = 2000  # of a rank in a round of the ring


def sides(bench, place, name, ranks, *options, path=None):
    """(side that compares messages, one that compares files, another one of these: what two alike differ by)."""
    def before():
        if path:
            remove_native([path])
        place.settle()

    def one(compare):
        job = bench.job(ranks, "sends_bench", *options)
        return Side([bench.holdfast, "run", "--replicas", str(REPLICAS), "--compare", compare, *job], before=before)
    return {f"{name}-messages": one("messages"), f"{name}-files": one("files"), f"{name}-again": one("files")}


def compared(bench):
    place = Place("/dev/shm", "tmpfs")
    all_sides, rows = {}, []
    for ranks in (1, 2):
        rounds = bench.pick(100, 300)
        name, words = f"ring-{ranks}", f"ring of {ranks} rank{'s' if ranks > 1 else ''}, R=2, --compare messages against files"
        all_sides.update(sides(bench, place, name, ranks, "--mode", "ring", "--rounds", rounds))
        messages = rounds * MESSAGES * ranks
        limit = MOST_MICROSECONDS * 1e-6 * messages
        rows.append(Row(f"{words}: {messages:,} messages one after another, {MOST_MICROSECONDS} µs each = {limit * 1e3:.0f} ms", f"{name}-messages", f"{name}-files",
                        "extra", limit, "compared-ring"))
        rows.append(Row(f"{words}: files against files, the noise", f"{name}-again", f"{name}-files", "extra", None, "compared-ring"))
        path = place.file(f"heat-{ranks}.dat")
        name, words = f"heat-{ranks}", f"heat, {ranks} rank{'s' if ranks > 1 else ''}, R=2, --compare messages against files"
        all_sides.update(sides(bench, place, name, ranks, "--mode", "heat", "--path", path, "--cells", 600, "--steps", bench.pick(200, 800), "--every", 100, path=path))
        for kind, how in (("least", "least times"), ("cpu", "processor time")):
            rows.append(Row(f"{words}: {how}", f"{name}-messages", f"{name}-files", kind, MOST, "compared-heat"))
            rows.append(Row(f"{words}: files against files, the noise: {how}", f"{name}-again", f"{name}-files", kind, None, "compared-heat"))
    return Group("compared", "Compared messages", all_sides, rows, bench.pick(3, 9), place.close)


def groups():
    return {"compared-messages": compared}

# Databases in one file or a few.
import dbm.dumb, shelve, sqlite3, os
with dbm.dumb.open("a") as d:
    for i in range(50): d[str(i)] = b"v" * i
    d["7"] = b"seven"; del d["8"]
with dbm.dumb.open("a", "r") as d: print(len(d), d["7"], sorted(d.keys())[:3])
with shelve.open("b") as s:
    for i in range(30): s[str(i)] = list(range(i))
with shelve.open("b") as s: print(len(s), s["29"][-1])
for name in [n for n in os.listdir(".") if n.startswith("b") ]: os.remove(name)  # whose bytes hold addresses
for mode in ("delete", "truncate", "persist", "memory"):
    db = sqlite3.connect(f"c-{mode}.dat"); db.execute(f"pragma journal_mode={mode}"); db.execute("pragma page_size=1024")
    db.execute("create table t (x integer primary key, y text)")
    for i in range(5):
        with db: db.executemany("insert into t (y) values (?)", [("row %d" % j,) for j in range(200)])
    try:
        with db: db.execute("insert into t (y) values ('gone')"); raise KeyError
    except KeyError: pass
    with db: db.execute("update t set y = upper(y) where x % 3 = 0"); db.execute("delete from t where x > 900")
    print(mode, db.execute("select count(*), max(y) from t").fetchone(), db.execute("pragma integrity_check").fetchone()); db.close()
    db = sqlite3.connect(f"c-{mode}.dat"); print(db.execute("select count(*) from t").fetchone()); db.execute("vacuum"); db.close()

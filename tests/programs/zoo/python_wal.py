#: ways nothing buffer
# sqlite's log, which maps a file for shared writing.
import sqlite3
db = sqlite3.connect("a.dat"); print(db.execute("pragma journal_mode=wal").fetchone())
db.execute("create table t (x)")
for i in range(5):
    with db: db.executemany("insert into t values (?)", [(j,) for j in range(100)])
second = sqlite3.connect("a.dat"); print(second.execute("select count(*) from t").fetchone())
with second: second.execute("insert into t values (7)")
print(db.execute("select count(*) from t").fetchone()); second.close(); db.close()

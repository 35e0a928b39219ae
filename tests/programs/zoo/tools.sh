#: needs perl awk sed sort tar gzip dd split
# Tools that every shell script uses.
seq 5000 > a.dat; sed -i 's/^7/seven/' a.dat; cksum < a.dat
awk '{ print $1 > "odd" NR % 2 ".dat" }' a.dat; cksum < odd0.dat; cksum < odd1.dat
perl -pi -e 's/9/nine/' a.dat; perl -i.bak -ne 'print unless /5/' a.dat; cksum < a.dat; cksum < a.dat.bak
sort -r -n a.dat -o b.dat; cksum < b.dat
gzip -kn b.dat; gzip -dc b.dat.gz | cksum; rm b.dat; gzip -d b.dat.gz; cksum < b.dat
tar --mtime=@0 --owner=0 --group=0 -cf c.dat a.dat b.dat; tar -tf c.dat; mkdir x; tar -C x -xf c.dat; cmp x/a.dat a.dat && echo same
tar --mtime=@0 --owner=0 --group=0 -rf c.dat odd0.dat; tar -tf c.dat
split -b 5000 b.dat part.; cat part.* | cmp - b.dat && echo whole; ls | grep -c '^part'
cp a.dat d.dat; cp -p a.dat e.dat; mv e.dat f.dat; cmp a.dat f.dat; truncate -s 1000 d.dat; truncate -s +500 d.dat; wc -c < d.dat
install -m 640 a.dat g.dat; stat -c '%a %s %F' g.dat; ln -s g.dat h.dat; echo appended >> h.dat; tail -n 1 g.dat
rm f.dat; [ -e f.dat ] || echo gone; touch i.dat; touch -d @1000000000 i.dat; stat -c %Y i.dat; chmod 600 i.dat; stat -c %a i.dat
head -c 100000 /dev/zero | tee j.dat | wc -c; cmp -n 100000 j.dat /dev/zero && echo zeros; od -An -tx1 -N4 j.dat
paste a.dat b.dat > k.dat; cut -f1 k.dat | cmp - a.dat; join a.dat a.dat | wc -l; uniq a.dat | wc -l; comm -12 a.dat a.dat | wc -l
cat a.dat b.dat > l.dat; cat l.dat >> m.dat; diff l.dat m.dat && echo equal; md5sum l.dat; xz -k l.dat 2>/dev/null; xz -dc l.dat.xz | cmp - l.dat
find . -name '*.dat' -size +1k -newer i.dat | grep -v holdfast | sort | head -3
[ m.dat -nt i.dat ] && echo newer; [ l.dat -ef ./l.dat ] && echo same file; file=$(mktemp n.XXXXXX); echo x > $file; mv $file n.dat; cat n.dat

# Redirections of a shell.
set -u
echo one > a.dat; echo two >> a.dat; cat a.dat
exec 3> b.dat; echo three >&3; echo four >&3; exec 3>&-; cat b.dat
echo 0123456789 > c.dat; exec 4<> c.dat; read -r -n 3 -u 4 x; echo "$x"; echo -n XY >&4; exec 4>&-; cat c.dat
cat > d.dat <<END
here $((1 + 2))
document
END
cat < d.dat | tr a-z A-Z > e.dat; cat e.dat
{ echo out; echo err >&2; } > f.dat 2>&1; cat f.dat
{ echo out; echo err >&2; } > g.dat 2> h.dat; cat h.dat g.dat
( for i in 1 2 3; do echo "back $i"; done ) > i.dat & wait; cat i.dat
diff <(sort a.dat) <(cat a.dat | sort) && echo same
: > j.dat; [ -e j.dat ] && [ ! -s j.dat ] && echo empty
while read -r line; do echo "[$line]"; done < d.dat > k.dat; cat k.dat
echo tail | tee l.dat m.dat | wc -c
for i in $(seq 200); do echo "line $i" >> n.dat; done; wc -l < n.dat; tail -n 1 n.dat
set -o noclobber; echo no > n.dat 2>/dev/null || echo kept; set +o noclobber
exec 5> o.dat 6>&5; echo five >&5; echo six >&6; (echo sub >&5); bash -c 'echo inner >&6'; exec 5>&- ; echo last >&6; exec 6>&-; cat o.dat
exec 7< a.dat; read -r -u 7 first; cat <&7; exec 7<&-; echo "$first"
printf '%s\n' b a c > p.dat; sort -o p.dat p.dat; cat p.dat

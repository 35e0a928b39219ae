# What a shell does with files: redirections, inherited descriptors, tools. The same words natively and on protected files.
set -e
echo one > out.a
printf 'two\n' >> out.a
(echo three; ls -d /; echo four) >> out.a
cat out.a
seq 1 100000 > out.b
wc -l < out.b
tail -n 1 < out.b
{ read x; read y; head -c 20; } < out.b; echo; echo $x $y
/usr/bin/python3 -c 'print("py"); import sys; sys.stderr.write("err\n")' > out.c 2>&1
cat out.c
sort -n -r out.b | head -n 2
while read line; do echo "got $line"; done < out.a
exec 3> out.d; echo via3 >&3; exec 3>&-; cat out.d
cat out.a out.c > out.e; cmp <(cat out.a out.c) out.e && echo cmp ok
dd if=out.b of=out.f bs=1000 2>/dev/null; cmp out.b out.f && echo dd ok
cp out.b out.g && cmp out.b out.g && echo cp ok
gzip -k out.b 2>&1 ; gunzip -c out.b.gz | cmp - out.b && echo gzip ok
tar --mtime=@0 -cf out.tar out.a out.b && tar xOf out.tar out.b | cmp - out.b && echo tar ok
mv out.g out.h; rm out.f; ls

#: needs make gcc ar ld
# A small project, built in parallel; what comes out of it runs.
mkdir src
for i in 1 2 3 4 5 6; do echo "int f$i(int x) { return x + $i; }" > src/f$i.c; done
{ for i in 1 2 3 4 5 6; do echo "int f$i(int);"; done; echo '#include <stdio.h>'; echo 'int main(void) { printf("%d\n", f1(f2(f3(f4(f5(f6(0))))))); return 0; }'; } > src/main.c
cat > Makefile <<'END'
objects = $(patsubst src/%.c,%.o,$(wildcard src/f*.c))
all: program shared.so
libf.a: $(objects)
	ar rcsD $@ $^
program: main.o libf.a
	gcc -o $@ main.o libf.a
shared.so: $(objects)
	gcc -shared -o $@ $^
%.o: src/%.c
	gcc -fPIC -g -O1 -c -o $@ $<
END
make -s -j2 && nm -g libf.a | grep -c ' T '
cp program a.out.copy; chmod +x a.out.copy; strip -o stripped program; size stripped | tail -1 | wc -w
make -s -j2 | grep -v "Nothing"; touch src/f3.c; make -j1 | grep -c gcc; objcopy --strip-debug main.o m2.o; file=$(ar t libf.a | head -1); ar x libf.a $file; cmp $file f1.o && echo extracted
rm -f program shared.so stripped a.out.copy libf.a *.o src/*.c

# Names that few expect.
set -u
name=$(printf 'with\nnewline.dat'); echo 1 > "$name"; cat "$name"
echo 2 > "with space.dat"; echo 3 > "it's \"quoted\".dat"; echo 4 > '*?[x].dat'; cat "with space.dat" "it's \"quoted\".dat" '*?[x].dat'
name=$(printf 'not-utf8-\377\200.dat'); echo 5 > "$name"; cat "$name"; echo more >> "$name"; cat "$name"
echo 6 > -dash.dat; cat ./-dash.dat; echo 7 > .hidden.dat; cat .hidden.dat; echo 8 > 'ä ö.dat'; cat 'ä ö.dat'; echo 9 > '$HOME.dat'; cat '$HOME.dat'
echo a > ./././/b.dat; cat "$PWD/b.dat"; mkdir -p d/e/f; echo deep > d/e/../e/f/c.dat; cat d/e/f/c.dat
long=$(printf 'n%.0s' $(seq 200)).dat; echo long > "$long"; cat "$long"; mv "$long" short.dat; cat short.dat
mkdir "dir with space"; cd "dir with space"; echo in > x.dat; cat x.dat; cp x.dat ../y.dat

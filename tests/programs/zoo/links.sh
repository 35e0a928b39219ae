# Symbolic links of the user's own, with files behind them.
mkdir real; echo one > real/a.dat; ln -s real/a.dat l.dat; ln -s l.dat ll.dat; ln -s real d
cat l.dat ll.dat d/a.dat; echo two >> l.dat; echo three >> ll.dat; echo four >> d/a.dat; cat real/a.dat
echo new > ll.dat; cat real/a.dat; truncate -s 2 l.dat; stat -L -c %s l.dat; stat -c %F l.dat; readlink l.dat ll.dat
dd if=/dev/zero of=l.dat bs=100000 count=1 conv=notrunc status=none; wc -c < real/a.dat; sed -i s/x/y/ d/a.dat; [ -L l.dat ] && echo still a link
rm l.dat; cat ll.dat 2>/dev/null || echo dangling; wc -c < real/a.dat; mv ll.dat m.dat; readlink m.dat; ln -s "$PWD/real/a.dat" abs.dat; cp abs.dat b.dat; wc -c < b.dat; rm abs.dat
ln -s nowhere.dat n.dat; echo made > n.dat; cat nowhere.dat; [ -L n.dat ] && echo link

#: needs dd
# dd with everything it has.
head -c 300000 /dev/urandom > /dev/null; seq 60000 | head -c 300000 > in.dat
dd if=in.dat of=a.dat bs=4k status=none; cmp in.dat a.dat
dd if=/dev/zero of=a.dat bs=1k seek=10 count=3 conv=notrunc status=none; cksum < a.dat
dd if=in.dat of=b.dat bs=1000 conv=fsync status=none; cmp in.dat b.dat
dd if=in.dat of=c.dat bs=64k conv=fdatasync,sparse status=none; cmp in.dat c.dat
dd if=in.dat of=c.dat bs=1k count=1 conv=excl status=none 2>/dev/null || echo exists
dd if=in.dat of=d.dat bs=1k count=5 conv=excl status=none; wc -c < d.dat
dd if=in.dat of=d.dat bs=1k count=2 oflag=append conv=notrunc status=none; wc -c < d.dat
dd if=in.dat of=e.dat bs=4k count=20 oflag=direct status=none 2>/dev/null; wc -c < e.dat
dd if=in.dat of=f.dat bs=4k count=5 oflag=sync status=none; dd if=in.dat of=f.dat bs=4k count=5 seek=7 oflag=dsync status=none; cksum < f.dat
dd if=/dev/zero of=g.dat bs=1 count=0 seek=1M status=none; wc -c < g.dat
dd if=in.dat bs=512 skip=3 count=2 status=none | cksum; dd if=in.dat of=h.dat ibs=700 obs=3000 status=none; cmp in.dat h.dat
dd if=in.dat of=i.dat bs=4k conv=swab,ucase,sync status=none; cksum < i.dat; dd of=j.dat status=none < in.dat; cmp in.dat j.dat
dd if=in.dat status=none bs=7777 > k.dat; cmp in.dat k.dat; dd if=in.dat of=k.dat bs=1k count=2 status=none; wc -c < k.dat
dd if=in.dat of=l.dat bs=1k count=1 conv=nocreat status=none 2>/dev/null || echo none; cat in.dat | dd of=m.dat bs=8k iflag=fullblock status=none; cmp in.dat m.dat

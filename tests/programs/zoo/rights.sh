# Permissions and directories that cannot be written.
umask 027; echo a > a.dat; stat -c %a a.dat; umask 077; : > b.dat; echo b >> b.dat; stat -c %a b.dat; chmod 444 b.dat; stat -c %a b.dat; cat b.dat
chmod u+x a.dat; stat -c %a a.dat; chmod 640 a.dat; echo more >> a.dat; stat -c %a a.dat; cat a.dat
mkdir full; echo inside > full/x.dat; chmod 555 full; cat full/x.dat; echo again >> full/x.dat; cat full/x.dat; chmod 755 full
python3 -c '
import os
fd = os.open("c.dat", os.O_CREAT | os.O_WRONLY, 0o400); os.write(fd, b"read only"); os.close(fd); print(oct(os.stat("c.dat").st_mode), open("c.dat").read())
os.chmod("c.dat", 0o600); open("c.dat", "a").write(" no more"); print(open("c.dat").read(), os.access("c.dat", os.R_OK | os.W_OK))
'
touch -d @1000000000 a.dat; touch d.dat; [ d.dat -nt a.dat ] && echo newer; cp -p a.dat e.dat; stat -c %Y a.dat e.dat; echo > a.dat; [ a.dat -nt e.dat ] && echo newer

# A file that changes its name while it is open, and is then handed to another program.
exec 3> b.dat; echo one >&3; mv b.dat c.dat; /bin/echo two >&3; exec 3>&-; cat c.dat
exec 5> e.tmp; /bin/echo first >&5; mv e.tmp e.dat; echo more >&5; cat e.dat; exec 5>&-; cat e.dat
bash -c 'exec > f.dat; echo before; mv f.dat g.dat; /bin/echo after'; cat g.dat

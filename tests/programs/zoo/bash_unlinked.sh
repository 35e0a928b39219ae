#: ways nothing buffer
# A file that loses its name while it is open, and is then handed to another program.
exec 3> a.dat; rm a.dat; echo nameless >&3; /bin/echo "by another program" >&3; exec 3>&-; ls a.dat 2>/dev/null
echo old > d.dat; exec 4< d.dat; rm d.dat; cat <&4; exec 4<&-

streams; echo "ended with $?"; cat k.dat

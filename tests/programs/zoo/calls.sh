calls; echo "ended with $?"

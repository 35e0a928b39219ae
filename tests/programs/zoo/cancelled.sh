timeout 20 cancelled; echo "ended with $?"

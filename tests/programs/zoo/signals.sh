timeout 20 signals; echo "ended with $?"

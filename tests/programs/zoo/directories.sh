# Directories that are renamed around files, and files that move between directories.
mkdir run.tmp; echo result > run.tmp/out.dat; seq 20000 > run.tmp/big.dat
mv run.tmp run.0; cat run.0/out.dat; cksum < run.0/big.dat
echo more >> run.0/out.dat; cat run.0/out.dat
mkdir other; mv run.0/out.dat other/moved.dat; cat other/moved.dat
cp -r run.0 copy; cksum < copy/big.dat
cd other; echo x > rel.dat; cd ..; cat other/rel.dat
ln -s other linked; cat linked/moved.dat; echo through >> linked/moved.dat; cat other/moved.dat

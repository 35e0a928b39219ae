"""Targets that are lost beside a program that runs."""
import os
import shutil


def delete(path):
    """Deletes the directory `path`, also where a program that runs makes something in it meanwhile."""
    while True:
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return

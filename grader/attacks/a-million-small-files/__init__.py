"""Uses up what a file system has of names."""

import os

for top in (os.environ["LAB_HOME"], os.getcwd()):
    os.chdir(top)
    for depth in range(2000):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
        for number in range(500):
            os.close(os.open(str(number), os.O_CREAT))

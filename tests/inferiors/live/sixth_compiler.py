"""A compiler under a job server, for `sixth_ranks.py`: `sixth_compiler.py TOKENS BACK SOURCE`."""

import os
import subprocess
import sys


def main():
    tokens, back, source = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    byte = os.read(tokens, 1)
    print("compiles", flush=True)
    subprocess.run(["g++", "-O1", "-c", source, "-o", f"{source}.o"], check=True)
    os.write(back, byte)


if __name__ == "__main__":
    main()

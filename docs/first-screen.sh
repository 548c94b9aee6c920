#!/bin/sh
# Makes docs/first-screen.svg, the picture in the README, of a recording:
#
#   kmt-capture record -d 30s --stack kmem:kmalloc --stack kmem:kmem_cache_alloc -o trace.kmt
#   docs/first-screen.sh trace.kmt
#
# The one in the repository is of 30 s in which a program opened pipes and closed none. Of the kernel's release the name of
# the build is left out.
set -eu
trace=$(realpath "$1")
cd "$(dirname "$0")"
COLUMNS=96 ../target/release/kmt-analyze --color always "$trace" |
    sed -E "s|$trace|trace.kmt|g; s/(Linux [0-9.]+)-[^ ]*[a-z0-9]/\1/" |
    python3 picture.py 'kmt-analyze trace.kmt' > first-screen.svg

#!/bin/sh
# Builds everything and runs the main job on the real capture in docs/sample: convert, verify, summarise.
# Needs no root, and no network but for cargo's crates; takes two minutes on a fresh machine.
set -eu
cd "$(dirname "$0")/.."
command -v cargo > /dev/null || {
    echo "cargo is missing: install Rust 1.85 or later with rustup, or your distribution's package" >&2
    exit 1
}
cargo build --release --quiet
PATH=$PWD/target/release:$PATH
trace=target/sample.kmt
say() { printf '\n$ %s\n' "$*"; "$@"; }

say kmt-capture convert docs/sample/x86_64-6.1 --force -o "$trace"
say kmt-analyze info "$trace"
say kmt-analyze summary "$trace"
say kmt-analyze callers -l 8 --sort live "$trace"
say kmt-analyze caches -l 8 --sort wasted,live "$trace"
say kmt-analyze lifetimes -l 6 "$trace"
say kmt-analyze pages -l 4 "$trace"
say kmt-analyze fragmentation -l 4 "$trace"
say kmt-analyze dump -l 5 "$trace"

printf '\nThe programs are in %s. To use them in this shell:\n\n    PATH=%s:$PATH\n\nThe trace is %s.\n' \
    "$PWD/target/release" "$PWD/target/release" "$PWD/$trace"

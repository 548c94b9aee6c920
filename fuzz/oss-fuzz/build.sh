#!/bin/bash -eu
# Builds all targets, with their seeds: SRC holds the repository as kmt, OUT gets the programs.
cd "$SRC/kmt/fuzz"
cargo fuzz build -O --debug-assertions
for source in fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    cp "target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    find "$(./seeds_of "$target")" -type f ! -name '*.json' -print0 | xargs -0 zip -q -j "$OUT/${target}_seed_corpus.zip"
done

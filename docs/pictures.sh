#!/bin/sh
# Draws the pictures of the guide from the capture in docs/sample: docs/pictures.sh [FOLDER]
#
# A test draws them again and compares. kmt-capture and kmt-analyze are found on PATH.
set -eu
docs=$(cd "$(dirname "$0")" && pwd)
to=${1:-$docs/guide/pictures}
mkdir -p "$to"
to=$(cd "$to" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
kmt-capture convert "$docs/sample/x86_64-6.1" -o sample.kmt
draw() { # picture, chart and its options
    picture=$1
    shift
    kmt-analyze chart "$@" sample.kmt -o "$to/$picture.svg" --force
}
draw timeline timeline --by cache
draw sizes waste
draw lifetimes lifetimes
draw slabs filling

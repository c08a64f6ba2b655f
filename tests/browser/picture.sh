#!/usr/bin/env bash
# Makes docs/pictures/report.png, the picture of README.md: a guided run in the lab, and its report in Chromium.
set -euo pipefail
cd "$(dirname "$0")/../.."

linerate=${1:-target/debug/linerate}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LINERATE_HISTORY="$folder/history.sqlite"
# 1 is a limit that remains.
"$linerate" doctor lab:transatlantic-1g-59ms --quiet --no-html || [ $? -eq 1 ]
"$linerate" report last --out "$folder/report.html"
mkdir -p docs/pictures
node tests/browser/picture.mjs "$folder/report.html" docs/pictures/report.png

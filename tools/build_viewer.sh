#!/usr/bin/env bash
# Bundle the page of scenes: lgcontrol/scene/page/viewer.js with the pinned versions of package-lock.json.
# Needs node and npm; nothing else of the project does. The hashes of what went in and came out are
# written beside it, and a test compares them.
set -euo pipefail
page="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/lgcontrol/scene/page"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cp "$page"/{viewer.js,package.json,package-lock.json} "$work"
cd "$work"
npm ci --no-audit --no-fund --omit-lockfile-registry-resolved
node_modules/.bin/esbuild viewer.js --bundle --minify --format=iife --legal-comments=inline \
    --outfile=viewer.min.js
cp viewer.min.js "$page"
cd "$page"
sha256sum package-lock.json package.json viewer.js viewer.min.js > SHA256SUMS

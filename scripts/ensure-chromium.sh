#!/usr/bin/env bash
# Browser tests need Chromium. Installs it where that is possible, and says so where it is not: the tests then
# skip, which with CI=true is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! compgen -G 'tests/e2e/*browser*' >/dev/null; then exit 0; fi
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq && apt-get install -y -qq chromium && exit 0
fi
echo "Chromium is missing and can't be installed from here: browser tests will be skipped." >&2

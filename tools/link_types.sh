#!/bin/sh
# Link the packages into build/types under their installed names, for the type checker: models/ is
# lgcontrol.models only through setuptools' package-dir, which no type checker reads.
set -eu
cd "$(dirname "$0")/.."
tree=build/types/lgcontrol
rm -rf build/types
mkdir -p $tree
for path in lgcontrol/* models controllers; do
    ln -s "$PWD/$path" "$tree/"
done

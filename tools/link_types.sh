#!/bin/sh
# Link the packages into build/types under their installed names, for the type checker: models/ is
# lgcontrol.models only through setuptools' package-dir, which no type checker reads. Each file gets
# its link, because pyright does not enter linked folders (and then finds nothing wrong).
set -eu
cd "$(dirname "$0")/.."
rm -rf build/types
find lgcontrol models controllers -name '*.py' -o -name '*.pyi' | while read -r file; do
    link=build/types/lgcontrol/${file#lgcontrol/}
    mkdir -p "${link%/*}"
    ln -s "$PWD/$file" "$link"
done

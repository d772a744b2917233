#!/usr/bin/env bash
# hunt.sh FOLDER TARGET OPTION...: runs the libFuzzer program fuzz_TARGET, which was built in the folder, with
# these options: on the corpus of the target and, of specs, on those that are shipped, with the words of the
# language.
#
# In the environment: FOUND is the folder of the inputs that were found to reach more than those before them;
# nothing is kept without it. Inputs that break the target are written into BROKEN, or into the working
# folder.
set -euo pipefail
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
folder=$1 target=$2
shift 2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/tmp" "$scratch/found"
options=("$@" "-artifact_prefix=${BROKEN:-.}/")
inputs=("${FOUND:-$scratch/found}" "$corpus/$target")
if [ -d "$folder/packed/$target" ]; then
    inputs+=("$folder/packed/$target")
fi
if [ -e "$folder/$target.dict" ]; then
    options+=("-dict=$folder/$target.dict")
fi
# What an input that breaks the target leaves behind is in a folder that is removed.
TMPDIR=$scratch/tmp "$folder/fuzz_$target" "${options[@]}" "${inputs[@]}"

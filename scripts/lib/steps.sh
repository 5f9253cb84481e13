# Runs named, timed steps for the scripts in the parent folder.

started=$SECONDS
# The steps that failed so far, with their exit codes.
failed_steps=()
# Third-party packages are installed once for all copies of this repository. The folder can be deleted at any time.
export ENDMARK_TEST_CACHE="${ENDMARK_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/endmark-tests}"

# step NAME COMMAND…: runs a command and prints its duration. `finish` reports a failure; the next step runs nevertheless.
step() {
  try_step "$@" || true
}

# required_step NAME COMMAND…: does the same for a step that all later ones need. If it fails, the script ends.
required_step() {
  try_step "$@" || finish ""
}

# need PROGRAM WHAT [PACKAGE…]: ensures that a program is installed, if possible from Debian's packages.
need() {
  local program=$1 what=$2
  shift 2
  command -v "$program" >/dev/null && return
  if (($# > 0)) && command -v apt-get >/dev/null; then
    step "installing $program" install_packages "$@"
    hash -r
    command -v "$program" >/dev/null && return
  fi
  printf '`%s` is missing: install %s, then run this again\n' "$program" "$what" >&2
  report_failed_steps
  exit 2
}

# finish WORDS: ends the script. Prints the words, or names every failed step and exits with 1.
finish() {
  if ((${#failed_steps[@]} > 0)); then
    report_failed_steps
    exit 1
  fi
  printf '\n%s, in %d s.\n' "$1" $((SECONDS - started))
}

try_step() {
  local name=$1 begun=$SECONDS status=0
  shift
  printf '\n==> %s: %s\n' "$name" "$*"
  "$@" || status=$?
  if ((status != 0)); then
    printf '==> %s: FAILED (exit %d), %d s\n' "$name" "$status" $((SECONDS - begun))
    failed_steps+=("$name (exit $status): $*")
    return 1
  fi
  printf '==> %s: ok, %d s\n' "$name" $((SECONDS - begun))
}

report_failed_steps() {
  ((${#failed_steps[@]} > 0)) || return 0
  printf '\n%d failed after %d s:\n' ${#failed_steps[@]} $((SECONDS - started)) >&2
  printf '  %s\n' "${failed_steps[@]}" >&2
}

install_packages() {
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# Named, timed steps for the scripts next to this folder.

started=$SECONDS
# Packages by others are installed once for all copies of this repository; the folder can be deleted at any time.
export ENDMARK_TEST_CACHE="${ENDMARK_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/endmark-tests}"

# step NAME COMMAND…: runs it, and says how long it took or that it failed.
step() {
  local name=$1 begun=$SECONDS status=0
  shift
  printf '\n==> %s: %s\n' "$name" "$*"
  "$@" || status=$?
  if ((status != 0)); then
    printf '\n==> %s FAILED (exit %d) after %d s: %s\n' "$name" "$status" $((SECONDS - begun)) "$*" >&2
    exit 1
  fi
  printf '==> %s: ok, %d s\n' "$name" $((SECONDS - begun))
}

# need PROGRAM WHAT [PACKAGE…]: makes sure that a program is there, from Debian's packages if it can be.
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
  exit 2
}

install_packages() {
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# finish WORDS: the last line of a run that went well.
finish() {
  printf '\n%s, in %d s.\n' "$1" $((SECONDS - started))
}

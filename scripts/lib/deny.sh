# Installs cargo-deny once for all copies of this repository. Source steps.sh first.

deny_version=0.20.2
deny_folder="$ENDMARK_TEST_CACHE/cargo-deny-$deny_version"

# need_deny: ensures that cargo-deny is installed. An unoptimised build is fast enough and takes a minute.
need_deny() {
  [[ -x $deny_folder/bin/cargo-deny ]] && return
  step "installing cargo-deny" env CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install --quiet --debug --locked --root "$deny_folder" "cargo-deny@$deny_version"
}

# deny ARGUMENT…: runs cargo-deny on this workspace with all features.
deny() {
  "$deny_folder/bin/cargo-deny" --locked --all-features "$@"
}

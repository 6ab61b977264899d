# The Debian packages, once: what building needs, what the tests and the sanitizers need besides. Sourced by ./dev and scripts/get-data.
BUILD_PACKAGES=(g++ cmake ninja-build antlr4 libantlr4-runtime-dev uuid-dev llvm-19-dev libfmt-dev nlohmann-json3-dev
  libeigen3-dev librandom123-dev libcli11-dev zlib1g-dev libgtest-dev libgmock-dev libopenmpi-dev openmpi-bin mold ccache libmimalloc-dev)
TEST_PACKAGES=(git gdb make pkg-config)
LINT_PACKAGES=(git clang-tidy-19 clang-format-19)
# Sanitizers and libFuzzer (presets asan, tsan), and what names the lines in their reports.
CLANG_PACKAGES=(clang-19 libclang-rt-19-dev llvm-19)

# install_packages NAME...: installs those that are missing, and says so.
install_packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "dev: these packages are missing and neither root nor sudo is at hand: ${missing[*]}" >&2
      exit 3
    }
    as_root=(sudo)
  fi
  echo "installing: ${missing[*]}" >&2
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update &&
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    exit 3
  fi
  rm -f "$log"
}

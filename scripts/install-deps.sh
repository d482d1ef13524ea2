#!/bin/bash
# Installs what Sandwich needs on Debian 12. Says what it installs, needs root
# or sudo only when something is missing, and does nothing otherwise.
#
#   scripts/install-deps.sh                  to build and test everything
#   scripts/install-deps.sh --runtime        for the runtime-only preset, no LLVM
#   scripts/install-deps.sh --runtime-build  for that preset without its tests
#   scripts/install-deps.sh --page           to test the chat page, too
#   scripts/install-deps.sh --operations     to test what is in packaging/, too
#   scripts/install-deps.sh --aarch64        for the preset runtime-aarch64, too:
#                                            makes build/sysroot-aarch64
set -euo pipefail

libraries=(
  libhwloc-dev libtbb-dev libprotobuf-dev libgtest-dev nlohmann-json3-dev
  libpcre2-dev libutf8proc-dev libxxhash-dev libcli11-dev libsodium-dev
  libhwy-dev libboost1.81-dev prometheus-cpp-dev
)
runtime=(
  build-essential cmake ninja-build pkg-config ccache protobuf-compiler
  "${libraries[@]}"
  python3 python3-jinja2 python3-jsonschema python3-numpy
)
compiler=(
  llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools liblld-22-dev
  clang-22 libclang-22-dev libclang-rt-22-dev clang-format-22 clang-tidy-22
  qemu-user zlib1g-dev libzstd-dev libxml2-dev libedit-dev libcurl4-openssl-dev
)
# Several hosts, and network namespaces to test them with.
hosts=(libopenmpi-dev openmpi-bin iproute2)
# The test of the chat page, which is left out without them.
page=(chromium fonts-dejavu-core)
# What builds for 64-bit ARM, and runs it.
aarch64=(clang-22 lld-22 llvm-22 qemu-user mmdebstrap)
# Proxies, and what makes containers: tests skip what is not there.
operations=(haproxy nginx-light openssl systemd buildah debootstrap)

packages=("${runtime[@]}" "${compiler[@]}" "${hosts[@]}")
case "${1:-}" in
  "") ;;
  --runtime) packages=("${runtime[@]}" llvm-22-tools) ;;
  --runtime-build) packages=("${runtime[@]}") ;;
  --page) packages+=("${page[@]}") ;;
  --operations) packages+=("${operations[@]}") ;;
  --aarch64) packages+=("${aarch64[@]}") ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done

# What only root may do.
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  sudo=(sudo)
fi
install_missing() {
  [ ${#sudo[@]} -eq 0 ] || command -v sudo >/dev/null || {
    echo "error: run this as root, or install sudo; missing: ${missing[*]}" >&2
    exit 1
  }
  echo "Installing ${#missing[@]} packages: ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  "${sudo[@]}" apt-get update -qq >&2
  local package candidate
  for package in "${missing[@]}"; do
    # Captured first: with pipefail, grep -q would end apt-cache by SIGPIPE.
    candidate=$(apt-cache policy "$package")
    if ! grep -q 'Candidate: [^(]' <<<"$candidate"; then
      echo "error: apt knows no package $package. LLVM 22 is among Debian 12's" \
        "security updates; enable the suite bookworm-security in" \
        "/etc/apt/sources.list" >&2
      exit 1
    fi
  done
  "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}
[ ${#missing[@]} -eq 0 ] || install_missing

# The same libraries for arm64, only unpacked, so that nothing of this system
# changes.
make_sysroot() {
  local folder=$1 list
  list=$(IFS=,; echo "libc6-dev,libstdc++-12-dev,python3-numpy,${libraries[*]}")
  [ "$(cat "$folder/packages" 2>/dev/null)" != "$list" ] || return 0
  echo "Unpacking arm64 packages into $folder" >&2
  "${sudo[@]}" rm -rf "$folder.new"
  mkdir -p "$folder.new"
  "${sudo[@]}" mmdebstrap --quiet --mode=root --variant=extract \
    --architectures=arm64 --include="$list" bookworm "$folder.new" >&2
  "${sudo[@]}" chown -R "$(id -u):$(id -g)" "$folder.new"
  cp -L "$folder.new/usr/bin/python3" "$folder.new/"
  # qemu-user would take files from these before the system's own.
  rm -rf "$folder.new"/{bin,dev,etc,sbin,tmp,var} "$folder.new"/usr/{bin,sbin}
  # Links must not lead out of the folder.
  find "$folder.new" -type l -lname '/*' | while read -r link; do
    ln -sfnr "$folder.new$(readlink "$link")" "$link"
  done
  # What else the packages would choose once they are installed.
  ln -sfnr "$folder.new"/usr/lib/aarch64-linux-gnu/{blas/libblas,lapack/liblapack}.so.3 \
    "$folder.new/usr/lib/aarch64-linux-gnu/"
  echo "$list" >"$folder.new/packages"
  rm -rf "$folder"
  mv "$folder.new" "$folder"
}
if [ "${1:-}" = --aarch64 ]; then
  make_sysroot "$(cd "$(dirname "$0")/.." && pwd)/build/sysroot-aarch64"
fi

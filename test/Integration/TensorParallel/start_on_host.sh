#!/bin/sh
# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# start_on_host.sh HOST COMMAND...
#
# What mpirun uses in place of ssh: runs COMMAND, a line for a shell, in the
# network namespace $SANDWICH_HOSTS-HOST, where the host is called HOST.
host=$1
shift
exec ip netns exec "$SANDWICH_HOSTS-$host" \
  unshare --uts sh -c "hostname $host && exec $*"

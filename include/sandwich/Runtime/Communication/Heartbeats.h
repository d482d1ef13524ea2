//===- Heartbeats.h - How often ranks and hosts beat ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Looks are counted, not seconds, so that nothing is lost where the whole
/// group is stopped and goes on.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_COMMUNICATION_HEARTBEATS_H
#define SANDWICH_RUNTIME_COMMUNICATION_HEARTBEATS_H

namespace sandwich {

/// From one beat to the next, of a rank or a host.
inline constexpr int beatMilliseconds = 100;
/// From one look at the beats of the others to the next.
inline constexpr int lookMilliseconds = 50;
/// So many looks in a row that find no beat of a host are a failure; for ranks,
/// `RankGroupOptions::hangSeconds` says how many.
inline constexpr int mostMissedLooks = 20;
/// The same before the first beat, while the program starts.
inline constexpr int mostFirstLooks = 600;

} // namespace sandwich

#endif // SANDWICH_RUNTIME_COMMUNICATION_HEARTBEATS_H

//===- Page.h - The page to try a server ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The chat page, lib/Server/Page/page.html, as a part of the program.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVER_PAGE_H
#define SANDWICH_SERVER_PAGE_H

#include <string>
#include <string_view>

namespace sandwich {

/// The whole page: HTML in UTF-8, to be served as "text/html; charset=utf-8".
/// It needs nothing but its own server, and asks that for paths beside its own:
/// v1/models, v1/chat/completions, v1/completions and status.
std::string_view chatPage();

/// The value of the header Content-Security-Policy to serve a page with: its
/// own script and its own style run, told by their hashes, and no others; it
/// may ask nobody but its own server, nobody may frame it, and its script can
/// make no markup of strings. A page has at most one `<script>` and at most one
/// `<style>`, both without attributes.
std::string contentSecurityPolicy(std::string_view page);

} // namespace sandwich

#endif // SANDWICH_SERVER_PAGE_H

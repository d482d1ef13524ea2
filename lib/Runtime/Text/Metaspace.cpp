//===- Metaspace.cpp - The visible mark for spaces ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Metaspace.h"

#include "Unicode.h"

using namespace sandwich;
using namespace sandwich::tokenizer;

Result<MetaspaceOptions> MetaspaceOptions::read(const JsonField &field) {
  MetaspaceOptions options;
  SANDWICH_ASSIGN_OR_RETURN(JsonField mark, field.member("replacement"));
  SANDWICH_ASSIGN_OR_RETURN(options.mark, mark.string());
  if (options.mark.empty() ||
      characterLength(options.mark[0]) != options.mark.size())
    return mark.error("must be one character");
  SANDWICH_ASSIGN_OR_RETURN(std::string scheme,
                            field.stringMember("prepend_scheme", "always"));
  // What older files have instead of the scheme.
  SANDWICH_ASSIGN_OR_RETURN(bool prefixSpace,
                            field.booleanMember("add_prefix_space", true));
  if (scheme == "never" || !prefixSpace)
    options.prepend = Prepend::Never;
  else if (scheme == "first")
    options.prepend = Prepend::First;
  else if (scheme == "always")
    options.prepend = Prepend::Always;
  else
    return field.member("prepend_scheme")->unsupported();
  return options;
}

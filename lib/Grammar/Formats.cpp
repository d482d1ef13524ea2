//===- Formats.cpp - What the keyword `format` names ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formats.h"

#include "Pattern.h"

#include <array>
#include <string>
#include <utility>

using namespace sandwich;
using namespace sandwich::grammar;

namespace {

/// Patterns, each made from those before it.
struct Patterns {
  // RFC 3339, appendix A; leap seconds are left out.
  const std::string dateOfYear =
      "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|"
      "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))";
  const std::string year = "(?:000[1-9]|00[1-9]\\d|0[1-9]\\d\\d|[1-9]\\d{3})";
  const std::string leapYear = "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|"
                               "(?:0[48]|[2468][048]|[13579][26])00)";
  const std::string date =
      "(?:" + year + "-" + dateOfYear + "|" + leapYear + "-02-29)";
  const std::string time = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?"
                           "(?:Z|[+\\-](?:[01]\\d|2[0-3]):[0-5]\\d)";
  const std::string duration =
      "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)"
      "(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))?|"
      "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))";

  const std::string octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  const std::string ipv4 = octet + "(?:\\." + octet + "){3}";
  // RFC 3986, section 3.2.2.
  const std::string group = "[0-9A-Fa-f]{1,4}";
  const std::string lastGroups = "(?:" + group + ":" + group + "|" + ipv4 + ")";
  const std::string ipv6 =
      "(?:(?:" + group + ":){6}" + lastGroups + "|" + "::(?:" + group +
      ":){5}" + lastGroups + "|" + "(?:" + group + ")?::(?:" + group + ":){4}" +
      lastGroups + "|" + "(?:(?:" + group + ":){0,1}" + group +
      ")?::(?:" + group + ":){3}" + lastGroups + "|" + "(?:(?:" + group +
      ":){0,2}" + group + ")?::(?:" + group + ":){2}" + lastGroups + "|" +
      "(?:(?:" + group + ":){0,3}" + group + ")?::" + group + ":" + lastGroups +
      "|" + "(?:(?:" + group + ":){0,4}" + group + ")?::" + lastGroups + "|" +
      "(?:(?:" + group + ":){0,5}" + group + ")?::" + group + "|" +
      "(?:(?:" + group + ":){0,6}" + group + ")?::)";

  // RFC 1123, section 2.1; at most four labels of at most 62 characters, so
  // that there are never more than 253.
  const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,60}[A-Za-z0-9])?";
  const std::string hostname = label + "(?:\\." + label + "){0,3}";
  // The dot-atoms of RFC 5321.
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-]+";
  const std::string email =
      atom + "(?:\\." + atom + ")*@" + label + "(?:\\." + label + "){1,3}";

  const std::string hexadecimal = "[0-9A-Fa-f]";
  const std::string uuid =
      hexadecimal + "{8}(?:-" + hexadecimal + "{4}){3}-" + hexadecimal + "{12}";

  // RFC 3986, appendix A.
  const std::string percent = "%" + hexadecimal + "{2}";
  const std::string unreserved = "A-Za-z0-9\\-._~!$&'()*+,;=";
  const std::string pathCharacter =
      "(?:[" + unreserved + ":@]|" + percent + ")";
  const std::string authority = "(?:(?:[" + unreserved + ":]|" + percent +
                                ")*@)?" + "(?:\\[" + ipv6 + "\\]|(?:[" +
                                unreserved + "]|" + percent + ")*)(?::\\d*)?";
  const std::string uri =
      "[A-Za-z][A-Za-z0-9+\\-.]*:(?://" + authority + "(?:/" + pathCharacter +
      "*)*|/(?:" + pathCharacter + "+(?:/" + pathCharacter + "*)*)?|" +
      pathCharacter + "+(?:/" + pathCharacter + "*)*|)" + "(?:\\?(?:[/?]|" +
      pathCharacter + ")*)?(?:#(?:[/?]|" + pathCharacter + ")*)?";
  // RFC 6901.
  const std::string jsonPointer = "(?:/(?:[^~/]|~[01])*)*";
};

} // namespace

std::optional<Expression>
sandwich::grammar::stringFormat(ExpressionPool &pool, std::string_view format) {
  const Patterns patterns;
  const std::array<std::pair<std::string_view, std::string>, 11> formats = {
      {{"date", patterns.date},
       {"time", patterns.time},
       {"date-time", patterns.date + "T" + patterns.time},
       {"duration", patterns.duration},
       {"email", patterns.email},
       {"hostname", patterns.hostname},
       {"ipv4", patterns.ipv4},
       {"ipv6", patterns.ipv6},
       {"json-pointer", patterns.jsonPointer},
       {"uri", patterns.uri},
       {"uuid", patterns.uuid}}};
  for (const auto &[name, pattern] : formats)
    if (name == format) {
      Result<Expression> expression = parsePattern(
          pool, pattern, PatternScope::Whole, Encoding::JsonString);
      return expression ? *expression : ExpressionPool::nothing;
    }
  return std::nullopt;
}

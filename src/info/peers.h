// How the ranks of a job reach each other, as the library has chosen it when they joined.
#pragma once

#include <string>

namespace tutti::internal {

// Joins the world that the environment names, as any program does, and leaves it. On rank 0 the report, on the others
// "": text, for each rank what carries its messages to whom and why, or a JSON array of what each rank says of its
// world. Throws tutti::Error.
std::string peers_report(bool as_json);

}  // namespace tutti::internal

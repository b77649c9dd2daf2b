// How every program here begins and ends: one rank speaks, all leave with the same status. 0; 1 for wrong results or a
// failure of the library; 2 for a usage error.
#pragma once

#include <tutti/tutti.h>

#include <functional>
#include <string>

namespace tutti::perf {

constexpr int kWrong = 1;
constexpr int kUsage = 2;

// With a setting of the library's ("TUTTI_ALGORITHM=..."), or with none ("").
tutti_status join(const std::string& setting, tutti_group** world);

// Rank 0 says it, and every rank leaves with `status` once it has been said: a launcher ends the others when one rank
// leaves with an error.
int leave(tutti_group* world, const std::string& text, int status);

// Even a usage error is said by one rank only, and that takes a world to know which.
int refuse(const std::string& text);

// What `work` comes to, in a world. An exception is said, is kWrong, and ends the other ranks' waiting.
int run_in(tutti_group* world, const char* program, const std::function<int()>& work);

// The whole of main: what `work` comes to. An exception is said, and is kWrong.
int run_program(const char* program, const std::function<int()>& work);

}  // namespace tutti::perf

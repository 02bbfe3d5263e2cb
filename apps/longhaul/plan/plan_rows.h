// Rows of what `plan` prints: a name and a value.
#pragma once

#include <string>

namespace longhaul::apps {

std::string row(const std::string& name, const std::string& value);
// In lines that a terminal can hold.
std::string paragraph(std::string name, const std::string& text);

std::string size_text(double bytes);

}  // namespace longhaul::apps

// Files that the build puts into the program (cmake/longhaul_embed.cmake).
#pragma once

#include <string_view>

namespace longhaul::embedded {

std::string_view report_html();
std::string_view report_css();
std::string_view report_base_js();
std::string_view report_curves_js();
std::string_view report_why_js();
std::string_view report_schedule_js();
std::string_view report_timeline_js();
std::string_view report_js();
std::string_view chart_min_js();

}  // namespace longhaul::embedded

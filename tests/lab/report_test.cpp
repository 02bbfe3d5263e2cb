#include "longhaul/lab/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/lab/sample_runs.h"

namespace longhaul::lab {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const std::size_t begin = text.find(open) + open.size();
  return text.substr(begin, text.find(close, begin) - begin);
}

std::string data_of(const std::string& page) {
  return between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
}

std::string table_of(const std::string& page) {
  return between(page, "<table id=\"results\">", "</table>");
}

TEST(Report, EscapesWhatPeopleWrote) {
  Scenario scenario = sample_scenario();
  scenario.title = "<script>alert('1') & \"2\"</script>";
  const std::string page = report_html(scenario, {sample_run({.recipe = "</script><b>"})}, "1.0");
  EXPECT_THAT(page,
              HasSubstr("&lt;script&gt;alert(&#39;1&#39;) &amp; &quot;2&quot;&lt;/script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_EQ(nlohmann::json::parse(data_of(page)).at("groups").at(0).at("name"), "</script><b>");
}

TEST(Report, DoesNotFillInWhatItHasFilledIn) {
  Scenario scenario = sample_scenario();
  scenario.title = "{{data}}";
  EXPECT_THAT(report_html(scenario, {}, "1.0"), HasSubstr("<h1>{{data}}</h1>"));
}

TEST(Report, HasOneTableRowPerRecipeWithItsNumbers) {
  const std::string table = table_of(report_html(
      sample_scenario(),
      {sample_run({.recipe = "d-sgd", .seed = 1}), sample_run({.recipe = "d-sgd", .seed = 2}),
       sample_run({.recipe = "dga", .step_time_s = 0.06, .best = 0.5})},
      "1.0"));
  std::size_t rows = 0;
  for (std::size_t at = table.find("<tr"); at != std::string::npos; at = table.find("<tr", at + 1))
    ++rows;
  EXPECT_EQ(rows, 3U);  // one of them the head
  EXPECT_THAT(table, HasSubstr("not reached<small>best accuracy 0.4"));
  EXPECT_THAT(table, HasSubstr("6.0 %"));
  EXPECT_THAT(table, HasSubstr("80.87MiB up<small>40.44MiB down"));
}

TEST(Report, TellsAlphaAndBeta) {
  const std::string page = report_html(sample_scenario(), {sample_run({.recipe = "d-sgd"})}, "1.0");
  EXPECT_THAT(page, HasSubstr("α 0.0999, β 2"));
  EXPECT_THAT(page, HasSubstr("106000 parameters"));
}

TEST(Report, CurvesOfDivergedRunsHaveGapsAndStayJson) {
  RunResult run = sample_run({.recipe = "d-sgd"});
  run.evaluations[3].loss = std::numeric_limits<double>::quiet_NaN();
  const auto data = nlohmann::json::parse(data_of(report_html(sample_scenario(), {run}, "1.0")));
  const auto& curve = data.at("groups").at(0).at("runs").at(0);
  EXPECT_EQ(curve.size(), run.evaluations.size());
  EXPECT_TRUE(curve.at(3).at(2).is_null());
  EXPECT_EQ(data.at("groups").at(0).at("timeline").size(), run.timeline.size());
}

TEST(Report, NamesNoAddressThatABrowserWouldFetch) {
  const std::string page = report_html(sample_scenario(), {sample_run({.recipe = "d-sgd"})}, "1.0");
  for (const char* fetch : {" src=", "<link", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(fetch))) << fetch;
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("Chart.js v"));
}

TEST(Report, TellsWhatAPlannerDecidedAndWhy) {
  RunResult run = sample_run({.recipe = "auto"});
  EXPECT_THAT(report_html(sample_scenario(), {run}, "1.0"), Not(HasSubstr("Decisions")));
  run.plans.push_back({.step = 7,
                       .time = Seconds(1.5),
                       .plan = {.keep_ratio = 0.03, .delay_steps = 4, .merge = Merge::kLate},
                       .predicted_step_time = Seconds(0.06),
                       .reason = "the <least> time"});
  const std::string page = report_html(sample_scenario(), {run}, "1.0");
  EXPECT_THAT(page,
              HasSubstr("<td>7</td><td>1.5s</td><td>0.03</td><td>4</td><td>1</td><td>late</td>"
                        "<td>60ms</td><td class=\"reason\">the &lt;least&gt; time</td>"));
}

TEST(Report, OfNoRunsSaysSo) {
  EXPECT_THAT(report_html(sample_scenario(), {}, "1.0"), HasSubstr("No run has finished"));
}

}  // namespace
}  // namespace longhaul::lab

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
  const std::string page =
      report_html(scenario, {sample_run({.recipe = "</script><b>"})}, {.version = "1.0"});
  EXPECT_THAT(page,
              HasSubstr("&lt;script&gt;alert(&#39;1&#39;) &amp; &quot;2&quot;&lt;/script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_EQ(nlohmann::json::parse(data_of(page)).at("groups").at(0).at("name"), "</script><b>");
}

TEST(Report, DoesNotFillInWhatItHasFilledIn) {
  Scenario scenario = sample_scenario();
  scenario.title = "{{data}}";
  EXPECT_THAT(report_html(scenario, {}, {.version = "1.0"}), HasSubstr("<h1>{{data}}</h1>"));
}

TEST(Report, HasOneTableRowPerRecipeWithItsNumbers) {
  const std::string table = table_of(report_html(
      sample_scenario(),
      {sample_run({.recipe = "d-sgd", .seed = 1}), sample_run({.recipe = "d-sgd", .seed = 2}),
       sample_run({.recipe = "dga", .step_time_s = 0.06, .best = 0.5})},
      {.version = "1.0"}));
  std::size_t rows = 0;
  for (std::size_t at = table.find("<tr"); at != std::string::npos; at = table.find("<tr", at + 1))
    ++rows;
  EXPECT_EQ(rows, 3U);  // one of them the head
  EXPECT_THAT(table, HasSubstr("not reached<small>best accuracy 0.4"));
  EXPECT_THAT(table, HasSubstr("3.8 %"));                 // mean over replicas
  EXPECT_THAT(table, HasSubstr("50 · 50 · 50 · 100 %"));  // where they differ
  EXPECT_THAT(table, HasSubstr("80.87 MiB up<small>40.44 MiB down"));
}

TEST(Report, TellsAlphaAndBeta) {
  const std::string page =
      report_html(sample_scenario(), {sample_run({.recipe = "d-sgd"})}, {.version = "1.0"});
  EXPECT_THAT(page, HasSubstr("α 0.0999, β 2"));
  EXPECT_THAT(page, HasSubstr("106000 parameters"));
}

TEST(Report, AlphaAndBetaAreOfTheSlowestReplicaAndSayWhich) {
  Scenario scenario = sample_scenario();
  scenario.replicas[2].link.up = scenario.replicas[2].link.up.from_bits_per_second(2.825e6);
  scenario.replicas[1].step_time = Seconds(0.12);
  const std::string page =
      report_html(scenario, {sample_run({.recipe = "d-sgd"})}, {.version = "1.0"});
  EXPECT_THAT(page, HasSubstr("α 0.0999, β 1 (replica 2, the slowest)"));
}

TEST(Report, OfALabSaysThatItsTimeIsVirtual) {
  const std::string page =
      report_html(sample_scenario(), {sample_run({.recipe = "d-sgd"})}, {.version = "1.0"});
  EXPECT_THAT(page, HasSubstr("Longhaul lab · sample"));
  EXPECT_THAT(page, HasSubstr("Virtual time, modelled links"));
  EXPECT_THAT(page, Not(HasSubstr("Predicted and measured")));
}

TEST(Report, OfARehearsalHasRealTimesThePredictionAndTheDigest) {
  RunResult run = sample_run({.recipe = "d-sgd"});
  run.predicted_step_time = Seconds(0.8);
  const std::string page = report_html(sample_scenario(), {run}, {.version = "1.0"});
  EXPECT_THAT(page, HasSubstr("Longhaul rehearsal · sample"));
  EXPECT_THAT(page, HasSubstr("Real time, emulated links"));
  EXPECT_THAT(page, HasSubstr("<td>800 ms</td><td>1 s</td><td>+25.0 %</td>"));
  EXPECT_THAT(page, HasSubstr("all 4 models equal<small>digest 0123456789abcdef"));
  EXPECT_EQ(nlohmann::json::parse(data_of(page)).at("clock"), "real");
  EXPECT_THAT(page.substr(0, page.find("<script")), Not(HasSubstr("irtual time")));
}

TEST(Report, SaysWhichCommandMadeItAndHasTheTableAsCsv) {
  const std::string page = report_html(sample_scenario(), {sample_run({.recipe = "d-sgd"})},
                                       {.version = "1.0", .command = "longhaul lab '<x>'"});
  EXPECT_THAT(page, HasSubstr("longhaul lab &#39;&lt;x&gt;&#39;"));
  EXPECT_THAT(page, HasSubstr("download=\"results.csv\" href=\"data:text/csv;charset=utf-8,"
                              "scenario,clock,recipe,"));
}

TEST(Report, OfAnOracleHasAMapInPlaceOfARowForEachFixedPlan) {
  RunResult judged = sample_run({.recipe = "auto", .step_time_s = 0.07});
  RunResult known = sample_run({.recipe = kClairvoyant, .step_time_s = 0.06});
  RunResult best = sample_run({.recipe = "static:keep_ratio=0.1:delay_steps=2"});
  RunResult worse = sample_run({.recipe = "static:keep_ratio=0.3:delay_steps=2", .step_time_s = 2});
  const std::vector<RunResult> runs{judged, known, best, worse};
  const std::string page =
      report_html(sample_scenario(), runs, {.version = "1.0", .verdict = verdict_of(runs)});
  const auto data = nlohmann::json::parse(data_of(page));
  EXPECT_EQ(data.at("groups").size(), 3U);
  EXPECT_EQ(data.at("oracle").at("cells").size(), 2U);
  EXPECT_TRUE(data.at("oracle").at("cells").at(0).at("is_best"));
  EXPECT_THAT(page, HasSubstr("Hindsight"));
  EXPECT_THAT(page, HasSubstr("-93.0 %"));  // auto against the best fixed plan
}

TEST(Report, CurvesOfDivergedRunsHaveGapsAndStayJson) {
  RunResult run = sample_run({.recipe = "d-sgd"});
  run.evaluations[3].loss = std::numeric_limits<double>::quiet_NaN();
  const auto data =
      nlohmann::json::parse(data_of(report_html(sample_scenario(), {run}, {.version = "1.0"})));
  const auto& curve = data.at("groups").at(0).at("runs").at(0);
  EXPECT_EQ(curve.size(), run.evaluations.size());
  EXPECT_TRUE(curve.at(3).at(2).is_null());
  EXPECT_EQ(data.at("groups").at(0).at("timeline").size(), run.timeline.size());
}

TEST(Report, NamesNoAddressThatABrowserWouldFetch) {
  const std::string page =
      report_html(sample_scenario(), {sample_run({.recipe = "d-sgd"})}, {.version = "1.0"});
  for (const char* fetch : {" src=", "<link", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(fetch))) << fetch;
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("Chart.js v"));
}

TEST(Report, TellsThePlanOfARun) {
  RunResult run = sample_run({.recipe = "static"});
  run.plan = {.keep_ratio = 0.02, .delay_steps = 6, .period_steps = 3, .merge = Merge::kLate};
  EXPECT_THAT(report_html(sample_scenario(), {run}, {.version = "1.0"}),
              HasSubstr("<td>δ 0.02, τ 6, H 3, late<small>"));
}

TEST(Report, TellsWhatAPlannerDecidedAndWhy) {
  RunResult run = sample_run({.recipe = "auto"});
  EXPECT_THAT(report_html(sample_scenario(), {run}, {.version = "1.0"}),
              Not(HasSubstr("Decisions")));
  run.plans.push_back({.step = 7,
                       .time = Seconds(1.5),
                       .plan = {.keep_ratio = 0.03, .delay_steps = 4, .merge = Merge::kLate},
                       .predicted_step_time = Seconds(0.06),
                       .reason = "the <least> time"});
  const std::string page = report_html(sample_scenario(), {run}, {.version = "1.0"});
  EXPECT_THAT(page, HasSubstr("<th scope=\"col\">Time</th><th scope=\"col\">Keep ratio</th>"
                              "<th scope=\"col\">Delay</th><th scope=\"col\">Period</th>"
                              "<th scope=\"col\">Merge</th><th scope=\"col\">Predicted step</th>"));
  EXPECT_THAT(page,
              HasSubstr("<td>7</td><td>1.5 s</td><td>0.03</td><td>4</td><td>1</td><td>late</td>"
                        "<td>60 ms</td><td class=\"reason\">the &lt;least&gt; time</td>"));
}

TEST(Report, OfNoRunsSaysSo) {
  EXPECT_THAT(report_html(sample_scenario(), {}, {.version = "1.0"}),
              HasSubstr("No run has finished"));
}

}  // namespace
}  // namespace longhaul::lab

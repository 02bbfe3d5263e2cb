// longhaul-torch: what needs libtorch. People run `longhaul`, which executes this.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/longhaul_torch/evaluate_command.h"
#include "apps/longhaul_torch/lab_command.h"
#include "apps/longhaul_torch/profile_command.h"
#include "apps/longhaul_torch/train_command.h"
#include "trainer/top_k_bench.h"

namespace {

int run_program(int argc, char** argv) {
  CLI::App program{"The part of longhaul that links libtorch; run `longhaul` instead."};
  program.name("longhaul-torch");
  program.require_subcommand(1);
  CLI::App* top_k =
      program.add_subcommand("bench-top-k", "Seconds of torch's abs, topk and gather, as JSON");
  std::size_t elements = 0;
  std::size_t keep = 0;
  std::size_t repetitions = 1;
  top_k->add_option("--elements", elements)->required();
  top_k->add_option("--keep", keep)->required();
  top_k->add_option("--repetitions", repetitions);
  longhaul::apps::LabCommandOptions lab_arguments;
  const CLI::App* lab = longhaul::apps::add_lab_options(program, lab_arguments);
  longhaul::apps::TrainCommandOptions train_arguments;
  const CLI::App* train = longhaul::apps::add_train_options(program, train_arguments);
  longhaul::apps::EvaluateCommandOptions evaluate_arguments;
  const CLI::App* evaluate = longhaul::apps::add_evaluate_options(program, evaluate_arguments);
  longhaul::apps::ProfileCommandOptions profile_arguments;
  const CLI::App* profile = longhaul::apps::add_profile_options(program, profile_arguments);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  if (lab->parsed()) return longhaul::apps::run_lab(lab_arguments);
  if (profile->parsed()) return longhaul::apps::run_profile(profile_arguments);
  if (evaluate->parsed()) return longhaul::apps::run_evaluate(evaluate_arguments);
  train_arguments.words.assign(argv + 1, argv + argc);
  if (train->parsed()) return longhaul::apps::run_train(train_arguments);
  const nlohmann::json result = {
      {"seconds", longhaul::trainer::torch_top_k_seconds(elements, keep, repetitions)}};
  std::cout << result.dump() << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "longhaul-torch: " << error.what() << '\n';
    return 1;
  }
}

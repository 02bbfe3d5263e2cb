// Where a process finds its rank and the place to meet.
#include "trainer/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/local_address.h"

namespace longhaul::trainer {
namespace {

using ::testing::HasSubstr;

struct LauncherCase {
  const char* name;
  Environment environment;
};

class EveryLauncher : public ::testing::TestWithParam<LauncherCase> {};

TEST_P(EveryLauncher, TellsRankSizeAndLocalRank) {
  const Result<RankOptions> place = find_rank(GetParam().environment);
  ASSERT_TRUE(place.ok()) << place.error().message;
  EXPECT_EQ(place->rank, 5U);
  EXPECT_EQ(place->size, 8U);
  EXPECT_EQ(place->launcher, GetParam().name);
  EXPECT_EQ(place->local_rank, place->launcher == "LeaderWorkerSet" ? 0U : 1U);
}

INSTANTIATE_TEST_SUITE_P(
    Table, EveryLauncher,
    ::testing::Values(
        LauncherCase{"torchrun", {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}},
        LauncherCase{"srun",
                     {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}}},
        LauncherCase{"Open MPI",
                     {{"OMPI_COMM_WORLD_RANK", "5"},
                      {"OMPI_COMM_WORLD_SIZE", "8"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}},
        LauncherCase{"PMI", {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}}},
        LauncherCase{"LeaderWorkerSet", {{"LWS_WORKER_INDEX", "5"}, {"LWS_GROUP_SIZE", "8"}}}),
    [](const auto& one) {
      std::string name = one.param.name;
      std::erase(name, ' ');
      return name;
    });

TEST(FindRank, TheInnermostLauncherWins) {
  Environment nested{{"LWS_WORKER_INDEX", "0"},     {"LWS_GROUP_SIZE", "2"},
                     {"SLURM_PROCID", "0"},         {"SLURM_NTASKS", "3"},
                     {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(find_rank(nested)->launcher, "Open MPI");
  nested["RANK"] = "6";
  nested["WORLD_SIZE"] = "7";
  EXPECT_EQ(find_rank(nested)->rank, 6U);
}

TEST(FindRank, ARankWithoutASizeIsNoLauncher) {
  const Environment half{{"RANK", "3"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}};
  EXPECT_EQ(find_rank(half)->launcher, "srun");
}

TEST(FindRank, WithoutALauncherItNamesThemAll) {
  const Result<RankOptions> place = find_rank({{"HOME", "/root"}});
  ASSERT_FALSE(place.ok());
  EXPECT_EQ(place.error().code, ErrorCode::kInvalidArgument);
  for (const char* name : {"WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LWS"})
    EXPECT_THAT(place.error().message, HasSubstr(name));
}

TEST(FindRank, RefusesNumbersThatCannotBe) {
  for (const char* rank : {"-1", "two", "2 ", "8", "99999999999999999999"}) {
    const Result<RankOptions> place = find_rank({{"RANK", rank}, {"WORLD_SIZE", "8"}});
    ASSERT_FALSE(place.ok()) << rank;
    EXPECT_THAT(place.error().message, HasSubstr("RANK"));
  }
}

TEST(FirstHost, ReadsListsOfSlurm) {
  EXPECT_EQ(*first_host("login1"), "login1");
  EXPECT_EQ(*first_host("a,b,c"), "a");
  EXPECT_EQ(*first_host("gpu[08-11,20],login1"), "gpu08");
  EXPECT_EQ(*first_host("gpu[7,9]"), "gpu7");
  EXPECT_EQ(*first_host("r[1-2]-ib,x"), "r1-ib");
  for (const char* list : {"", "[", "gpu[", "gpu[]", "gpu[3", ",a", "r[1-2]n[1-2]"})
    EXPECT_FALSE(first_host(list).ok()) << list;
}

TEST(FindRendezvous, TheEnvironmentThenTheOptionThenSlurm) {
  Environment environment{{"SLURM_JOB_ID", "4711"}, {"SLURM_NODELIST", "n[1-4]"}};
  EXPECT_EQ(*find_rendezvous(environment, ""), "n1:24711");
  environment["SLURM_STEP_NODELIST"] = "n[3-4]";
  EXPECT_EQ(*find_rendezvous(environment, ""), "n3:24711");
  EXPECT_EQ(*find_rendezvous(environment, "hub:7"), "hub:7");
  environment["MASTER_ADDR"] = "10.0.0.1";
  EXPECT_EQ(*find_rendezvous(environment, "hub:7"), "hub:7");  // an address without a port
  environment["MASTER_PORT"] = "29500";
  EXPECT_EQ(*find_rendezvous(environment, "hub:7"), "10.0.0.1:29500");
  environment["MASTER_ADDR"] = "fd00::1";
  EXPECT_EQ(*find_rendezvous(environment, "hub:7"), "[fd00::1]:29500");
}

TEST(LocalAddress, OfLoopbackIsLoopback) {
  EXPECT_EQ(*local_address_towards("127.0.0.1", 1), "127.0.0.1");
  EXPECT_FALSE(local_address_towards("no.such.host.invalid", 1).ok());
}

TEST(FindRendezvous, SaysWhatItExpects) {
  const Result<std::string> place = find_rendezvous({}, "");
  ASSERT_FALSE(place.ok());
  EXPECT_THAT(place.error().message, HasSubstr("MASTER_ADDR"));
  EXPECT_THAT(place.error().message, HasSubstr("--rendezvous HOST:PORT"));
}

}  // namespace
}  // namespace longhaul::trainer

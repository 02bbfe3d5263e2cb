#include "longhaul/base/units.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul {
namespace {

// What four printed digits can be off by, relative to the value.
constexpr double kPrintedPrecision = 5.1e-4;

// Text that no parser may accept, whatever its units.
const std::vector<std::string> kNeverANumber = {
    "",     " ",    "s",      "mbit",  "KiB",    "-1s",
    "+1s",  "-1",   ".5s",    "1.s",   "1..5s",  " 1s",
    "1s ",  "1 ",   "1 s s",  "0x10s", "0x10",   "nan",
    "nans", "inf",  "infs",   "1e",    "1es",    "1e999",
    "1e+",  "1,5s", "1_000s", "1'000", "1smbit", "1e999999999999s",
    "٣s"};

// Spellings with what they mean, in base units.
struct Spelling {
  const char* text;
  double value;
};

std::vector<double> spread_over_magnitudes(double lowest_exponent, double highest_exponent) {
  std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp): the same values every time
  std::uniform_real_distribution<double> exponent(lowest_exponent, highest_exponent);
  std::vector<double> values;
  for (int i = 0; i < 2000; ++i) values.push_back(std::pow(10.0, exponent(random)));
  return values;
}

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("7ns").value().count(), 7e-9);
  EXPECT_EQ(parse_duration("1.5us").value().count(), 1.5e-6);
  EXPECT_EQ(parse_duration("200ms").value().count(), 0.2);
  EXPECT_EQ(parse_duration("0.1s").value().count(), 0.1);
  EXPECT_EQ(parse_duration("2min").value().count(), 120);
  EXPECT_EQ(parse_duration("3h").value().count(), 10800);
  EXPECT_EQ(parse_duration("0s").value().count(), 0);
  EXPECT_EQ(parse_duration("1e-3s").value().count(), 1e-3);
}

TEST(ParseDuration, RefusesWhatIsNotAPlainNumberAndAUnit) {
  for (const auto& text : kNeverANumber) EXPECT_FALSE(parse_duration(text).ok()) << text;
  for (const auto* text : {"5", "5m", "5M", "5sec", "5msx", "1e308h", "20mbit"})
    EXPECT_FALSE(parse_duration(text).ok()) << text;
}

TEST(ParseDuration, UnderstandsOtherSpellings) {
  for (const auto& [text, value] : {Spelling{"1 s", 1},
                                    {"200 ms", 0.2},
                                    {"200MS", 0.2},
                                    {"5S", 5},
                                    {"2Min", 120},
                                    {"1H", 3600},
                                    {"7\u00b5s", 7e-6}}) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->count(), value) << text;
  }
}

TEST(ParseBandwidth, ReadsBitsAndBytes) {
  EXPECT_EQ(parse_bandwidth("100bit").value().bits_per_second(), 100);
  EXPECT_EQ(parse_bandwidth("800kbit").value().bytes_per_second, 100'000);
  EXPECT_EQ(parse_bandwidth("20mbit").value().bytes_per_second, 2.5e6);
  EXPECT_EQ(parse_bandwidth("1.5gbit").value().bits_per_second(), 1.5e9);
  EXPECT_EQ(parse_bandwidth("12MB/s").value().bytes_per_second, 12e6);
  EXPECT_EQ(parse_bandwidth("1tbit").value(), Bandwidth::from_bits_per_second(1e12));
}

TEST(ParseBandwidth, RefusesWhatIsNotAPlainNumberAndAUnit) {
  for (const auto& text : kNeverANumber) EXPECT_FALSE(parse_bandwidth(text).ok()) << text;
  // Bits or bytes, or no rate at all?
  for (const auto* text : {"20", "20mb", "20MB", "20Mb", "20M", "20m", "20b", "20B", "20MBPS",
                           "20MB/S", "20mbyte", "20MiB/s", "20mbit/h", "20pbit", "20mmbit"})
    EXPECT_FALSE(parse_bandwidth(text).ok()) << text;
}

TEST(ParseBandwidth, UnderstandsWhatPeopleWrite) {
  for (const auto& [text, bits] :
       {Spelling{"20mbit", 20e6}, {"20Mbit", 20e6},   {"20 mbit", 20e6},   {"20MBIT", 20e6},
        {"20mbits", 20e6},        {"20Mbit/s", 20e6}, {"20mbits/s", 20e6}, {"20Mbps", 20e6},
        {"20mbps", 20e6},         {"20Mb/s", 20e6},   {"1.5Gbit", 1.5e9},  {"500 Mbit/s", 500e6},
        {"64Kbps", 64e3},         {"1Tbit/s", 1e12},  {"9600bps", 9600},   {"20MB/s", 160e6},
        {"20MBps", 160e6},        {"20mB/s", 160e6},  {"1GB/s", 8e9},      {"20Mbyte/s", 160e6},
        {"20MBytes/s", 160e6},    {"100KB/s", 800e3}, {"100B/s", 800}}) {
    const auto parsed = parse_bandwidth(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->bits_per_second(), bits) << text;
  }
}

TEST(ParseBandwidth, SaysWhatWasExpectedAndWhatItGot) {
  const auto parsed = parse_bandwidth("20mb");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(parsed.error().message,
            "bandwidth: expected a number and a unit (bit, kbit, mbit, gbit, tbit; bytes: B/s, "
            "kB/s, MB/s, GB/s) such as 20mbit, got \"20mb\"");
}

TEST(ParseBytes, KnowsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("123B").value(), 123U);
  EXPECT_EQ(parse_bytes("64KiB").value(), 65536U);
  EXPECT_EQ(parse_bytes("25MiB").value(), 25U * 1024 * 1024);
  EXPECT_EQ(parse_bytes("1.5GiB").value(), 3ULL << 29);
  EXPECT_EQ(parse_bytes("1kB").value(), 1000U);
  EXPECT_EQ(parse_bytes("1MB").value(), 1'000'000U);
  EXPECT_EQ(parse_bytes("1.000000000001TB").value(), 1'000'000'000'001U);
}

TEST(ParseBytes, RoundsFractionsOfAUnitToTheNearestByteButHasNoFractionsOfAByte) {
  EXPECT_EQ(parse_bytes("1.3KiB").value(), 1331U);    // 1331.2
  EXPECT_EQ(parse_bytes("1.0005kB").value(), 1001U);  // 1000.5
  EXPECT_EQ(parse_bytes("1.0004kB").value(), 1000U);
  EXPECT_FALSE(parse_bytes("1.5B").ok());
}

TEST(ParseBytes, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse_bytes("18446744073709551615B").value(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(parse_bytes("18446744073709551616B").ok());
  EXPECT_FALSE(parse_bytes("16777216TiB").ok());
  for (const auto& text : kNeverANumber) EXPECT_FALSE(parse_bytes(text).ok()) << text;
  for (const auto* text : {"64", "64K", "64b", "64mb", "64Mb", "20Mbit"})
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
}

TEST(ParseBytes, UnderstandsOtherSpellings) {
  for (const auto& [text, bytes] :
       {Spelling{"64kib", 65536}, {"64 KiB", 65536}, {"64KB", 64e3}, {"1 MB", 1e6}, {"1mB", 1e6}}) {
    const auto parsed = parse_bytes(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(static_cast<double>(*parsed), bytes) << text;
  }
}

TEST(ParseCount, IsExact) {
  EXPECT_EQ(parse_count("65536").value(), 65536U);
  EXPECT_EQ(parse_count("1.3k").value(), 1300U);
  EXPECT_EQ(parse_count("25M").value(), 25'000'000U);
  EXPECT_EQ(parse_count("124.439808M").value(), 124'439'808U);
  EXPECT_EQ(parse_count("2B").value(), 2'000'000'000U);
  EXPECT_EQ(parse_count("1e6").value(), 1'000'000U);
  EXPECT_EQ(parse_count("3.000").value(), 3U);
  EXPECT_EQ(parse_count("9007199254740993").value(),
            9007199254740993U);  // 2^53 + 1: no double holds it
  EXPECT_EQ(parse_count("18446744073709551615").value(), std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseCount, RefusesWhatIsNotWholeOrDoesNotFit) {
  for (const auto* text :
       {"1.5", "1.0005k", "1e-3", "18446744073709551616", "99999999999B", "1T", "5kk"}) {
    EXPECT_FALSE(parse_count(text).ok()) << text;
  }
  for (const auto& text : kNeverANumber) EXPECT_FALSE(parse_count(text).ok()) << text;
}

TEST(ParseCount, UnderstandsOtherSpellings) {
  EXPECT_EQ(parse_count("1K").value(), 1000U);
  EXPECT_EQ(parse_count("124m").value(), 124'000'000U);
  EXPECT_EQ(parse_count("7 b").value(), 7'000'000'000U);
}

TEST(ParseRatio, ReadsDecimalsFractionsAndPercent) {
  EXPECT_EQ(parse_ratio("0.01").value(), 0.01);
  EXPECT_EQ(parse_ratio("1/64").value(), 1.0 / 64);
  EXPECT_EQ(parse_ratio("1%").value(), 0.01);
  EXPECT_EQ(parse_ratio("1e-3").value(), 0.001);
  EXPECT_EQ(parse_ratio("0").value(), 0.0);
  EXPECT_EQ(parse_ratio("1").value(), 1.0);
  EXPECT_EQ(parse_ratio("100%").value(), 1.0);
}

TEST(ParseRatio, RefusesWhatIsNotFromZeroToOne) {
  for (const auto* text :
       {"1.01", "101%", "2/1", "0/0", "1/0", "1/", "/2", "1/2/3", "1%/2", "1/2%", "1/-2"}) {
    EXPECT_FALSE(parse_ratio(text).ok()) << text;
  }
  for (const auto& text : kNeverANumber) EXPECT_FALSE(parse_ratio(text).ok()) << text;
}

TEST(PrintedUnits, AreWhatPeopleWrite) {
  EXPECT_EQ(to_string(Seconds(0.2)), "200ms");
  EXPECT_EQ(to_string(Seconds(0)), "0s");
  EXPECT_EQ(to_string(Seconds(1.5e-6)), "1.5us");
  EXPECT_EQ(to_string(Seconds(90)), "1.5min");
  EXPECT_EQ(to_string(Seconds(10800)), "3h");
  EXPECT_EQ(to_string(Bandwidth::from_bits_per_second(20e6)), "20mbit");
  EXPECT_EQ(to_string(Bandwidth::from_bits_per_second(1.5e9)), "1.5gbit");
  EXPECT_EQ(to_string(Bandwidth{}), "0bit");
  EXPECT_EQ(bytes_text(65536), "64KiB");
  EXPECT_EQ(bytes_text(1023), "1023B");
  EXPECT_EQ(bytes_text(0), "0B");
  EXPECT_EQ(bytes_text(123'456'789), "117.7MiB");
}

TEST(PrintedUnits, MoveToTheNextUnitWhenRoundingReachesIt) {
  EXPECT_EQ(to_string(Seconds(999.99e-6)), "1ms");
  EXPECT_EQ(to_string(Seconds(999.9e-6)), "999.9us");
  EXPECT_EQ(bytes_text((1ULL << 20) - 1), "1MiB");
}

TEST(PrintedUnits, NeverUseAnExponentForLargeValues) {
  EXPECT_EQ(to_string(Seconds(3600.0 * 1'234'567)), "1234567h");
  EXPECT_THAT(bytes_text(std::numeric_limits<std::uint64_t>::max()), testing::EndsWith("TiB"));
}

TEST(PrintedUnits, ReadBackUpToTheLongestDuration) {
  for (const char* text : {"10e8s", "299999.7h", "300000h"}) {
    const Seconds longest = parse_duration(text).value();
    EXPECT_NEAR(parse_duration(to_string(longest)).value() / longest, 1, 1e-4) << text;
  }
  EXPECT_FALSE(parse_duration("300001h").ok());
}

TEST(PrintedUnits, ReadBackAsTheSameDuration) {
  for (const double value : spread_over_magnitudes(-12, 9)) {
    const auto parsed = parse_duration(to_string(Seconds(value)));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_NEAR(parsed.value().count(), value, value * kPrintedPrecision);
  }
}

TEST(PrintedUnits, ReadBackAsTheSameBandwidth) {
  for (const double value : spread_over_magnitudes(-3, 15)) {
    const auto parsed = parse_bandwidth(to_string(Bandwidth{.bytes_per_second = value}));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_NEAR(parsed.value().bytes_per_second, value, value * kPrintedPrecision);
  }
}

TEST(PrintedUnits, ReadBackAsTheSameByteCount) {
  for (const double value : spread_over_magnitudes(0, 19)) {
    const auto bytes = static_cast<std::uint64_t>(value);
    const auto parsed = parse_bytes(bytes_text(bytes));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    const auto read_back = static_cast<double>(parsed.value());
    EXPECT_NEAR(read_back, static_cast<double>(bytes), value * kPrintedPrecision + 0.5);
  }
}

}  // namespace
}  // namespace longhaul

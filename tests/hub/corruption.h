// Random damage to files: bits that flip, ends, blocks and files that go, double or change places.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "longhaul/base/file.h"

namespace longhaul::testing {

using Files = std::map<std::string, ByteBuffer>;  // of a directory, by name

inline Files files_of(const std::filesystem::path& directory) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files[entry.path().filename().string()] = read_file(entry.path(), 1 << 20).value();
  return files;
}

inline void put_files(const Files& files, const std::filesystem::path& directory) {
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  for (const auto& [name, bytes] : files) {
    std::ofstream file(directory / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
}

// Damages one file, or swaps two. Says what was done.
class Corruption {
 public:
  explicit Corruption(std::uint64_t seed) : random_(seed) {}

  std::string apply(Files& files) {
    const auto victim = std::next(files.begin(), static_cast<std::ptrdiff_t>(below(files.size())));
    ByteBuffer& bytes = victim->second;
    const std::string& name = victim->first;
    const auto begin = static_cast<std::ptrdiff_t>(below(std::max<std::size_t>(bytes.size(), 1)));
    const auto most = std::min<std::size_t>(200, bytes.size() - static_cast<std::size_t>(begin));
    const auto end = begin + static_cast<std::ptrdiff_t>(most == 0 ? 0 : 1 + below(most));
    const std::string place = name + " at " + std::to_string(begin) + " to " + std::to_string(end);
    switch (bytes.empty() ? 6 : below(7)) {
      case 0:
      case 1:
        bytes[static_cast<std::size_t>(begin)] ^= std::byte(1 << below(8));
        return "flips a bit in " + place;
      case 2:
        bytes.resize(static_cast<std::size_t>(begin));
        return "cuts off " + place;
      case 3:
        std::fill(bytes.begin() + begin, bytes.begin() + end, std::byte{0});
        return "zeroes " + place;
      case 4: {
        const ByteBuffer block(bytes.begin() + begin, bytes.begin() + end);
        bytes.insert(bytes.begin() + end, block.begin(), block.end());
        return "doubles " + place;
      }
      case 5:
        bytes.erase(bytes.begin() + begin, bytes.begin() + end);
        return "takes out " + place;
      default: {
        const auto other =
            std::next(files.begin(), static_cast<std::ptrdiff_t>(below(files.size())));
        if (other == victim) {
          const std::string gone = name;
          files.erase(victim);
          return "removes " + gone;
        }
        std::swap(bytes, other->second);
        return "swaps " + name + " and " + other->first;
      }
    }
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  std::mt19937_64 random_;
};

}  // namespace longhaul::testing

#include "longhaul/session/interrupt.h"

#include <csignal>

namespace longhaul {
namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int /*signal*/) { interrupted = 1; }

}  // namespace

void notice_interrupts() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool is_interrupted() { return interrupted != 0; }

}  // namespace longhaul

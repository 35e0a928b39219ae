#include "base/without_signals.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

bool is_held_back(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(WithoutSignals, all_are_held_back_and_then_as_they_were) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  {
    const WithoutSignals none;
    EXPECT_TRUE(is_held_back(SIGTERM) && is_held_back(SIGUSR1) && is_held_back(SIGSEGV));
  }
  EXPECT_FALSE(is_held_back(SIGTERM) || is_held_back(SIGSEGV));
  EXPECT_TRUE(is_held_back(SIGUSR1));
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

TEST(WithoutSignals, faults_may_be_let_through) {
  const WithoutSignals none(WithoutSignals::Faults::let_through);
  EXPECT_TRUE(is_held_back(SIGTERM));
  EXPECT_FALSE(is_held_back(SIGSEGV) || is_held_back(SIGABRT));
}

}  // namespace
}  // namespace holdfast

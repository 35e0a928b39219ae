#include "transport/greeting.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace holdfast::transport {
namespace {

Agreement agreed() {
  Agreement agreement{Protocol::agent, 3, {}, {}};
  for (size_t i = 0; i < agreement.secret.size(); ++i) agreement.secret[i] = std::byte(i + 1);
  agreement.server.fill(std::byte(5));
  return agreement;
}

Nonce fresh() {
  Nonce nonce;
  EXPECT_TRUE(draw(nonce));
  return nonce;
}

// What either side says of the other.
struct Meeting {
  Status client;
  bool server = false;
};
Meeting meet(const Agreement& client_has, const Agreement& server_has) {
  const ClientGreeting client(client_has, fresh());
  ServerGreeting server(server_has, fresh());
  const auto reply = server.answer(client.hello());
  if (!reply) return {Status(Kind::io, "hung up"), false};
  const auto closing = client.answer(*reply);
  return {closing.status(), closing.ok() && server.accepts(*closing)};
}

TEST(Greeting, of_two_that_know_the_secret_is_accepted_by_both) {
  const Meeting meeting = meet(agreed(), agreed());
  EXPECT_TRUE(meeting.client.ok()) << meeting.client.sentence();
  EXPECT_TRUE(meeting.server);
}

TEST(Greeting, with_another_secret_is_accepted_by_neither) {
  for (size_t byte : {0u, 31u}) {
    Agreement other = agreed();
    other.secret[byte] ^= std::byte{128};
    const Meeting meeting = meet(other, agreed());
    EXPECT_EQ(meeting.client.kind(), Kind::access);
    EXPECT_FALSE(meeting.server);
  }
}

TEST(Greeting, of_another_server_than_the_one_that_is_meant_is_refused) {
  Agreement other = agreed();
  other.server.fill(std::byte(6));
  EXPECT_EQ(meet(agreed(), other).client.kind(), Kind::access);
}

TEST(Greeting, of_another_version_says_so) {
  Agreement other = agreed();
  other.version = 4;
  const Meeting meeting = meet(agreed(), other);
  EXPECT_EQ(meeting.client.kind(), Kind::version);
  EXPECT_EQ(meeting.client.sentence(), "it speaks version 4 of protocol 2, and this process version 3 of protocol 2");
  EXPECT_FALSE(meeting.server);
}

// The other side knows the secret, but what it proved with it was another connection.
TEST(Greeting, that_was_overheard_opens_no_other_connection) {
  const ClientGreeting client(agreed(), fresh());
  ServerGreeting first(agreed(), fresh()), second(agreed(), fresh());
  const auto reply = first.answer(client.hello());
  ASSERT_TRUE(reply);
  const auto closing = client.answer(*reply);
  ASSERT_TRUE(closing.ok());
  EXPECT_TRUE(first.accepts(*closing));
  ASSERT_TRUE(second.answer(client.hello()));
  EXPECT_FALSE(second.accepts(*closing));
  EXPECT_FALSE(ClientGreeting(agreed(), fresh()).answer(*reply).ok());
}

// A server asked for a proof as if it were a client, and the other way round.
TEST(Greeting, that_is_sent_back_as_it_came_proves_nothing) {
  const ClientGreeting client(agreed(), fresh());
  ServerGreeting server(agreed(), fresh());
  const auto reply = server.answer(client.hello());
  ASSERT_TRUE(reply);
  EXPECT_FALSE(server.accepts(Closing{reply->proof}));
  Reply mirrored = *reply;
  mirrored.nonce = client.hello().nonce;
  EXPECT_FALSE(client.answer(mirrored).ok());
}

TEST(Greeting, of_something_else_is_hung_up_on) {
  Hello http;
  std::memcpy(static_cast<void*>(&http), "GET / HTTP/1.1\r\n", 16);
  ServerGreeting server(agreed(), fresh());
  EXPECT_FALSE(server.answer(http));
  EXPECT_FALSE(server.accepts(Closing{}));
  Reply other;
  other.magic = 1;
  EXPECT_EQ(ClientGreeting(agreed(), fresh()).answer(other).status().kind(), Kind::access);
}

// The same bytes for ever: a client of today and a server of tomorrow.
TEST(Greeting, has_the_bytes_that_the_protocols_page_says) {
  Nonce ours, theirs;
  ours.fill(std::byte(7)), theirs.fill(std::byte(9));
  const Hello hello = ClientGreeting(agreed(), ours).hello();
  EXPECT_EQ(std::memcmp(&hello, "hfgreet1\2\0\0\0\3\0\0\0\7\7\7\7", 20), 0);
  ServerGreeting server(agreed(), theirs);
  const auto reply = server.answer(hello);
  ASSERT_TRUE(reply);
  EXPECT_EQ(std::memcmp(&*reply, "hfgreet1\2\0\0\0\3\0\0\0\t\t\t\t", 20), 0);
  const auto closing = ClientGreeting(agreed(), ours).answer(*reply);
  ASSERT_TRUE(closing.ok());
  std::string text;
  for (const std::byte byte : closing->proof) text += "0123456789abcdef"[int(byte) >> 4], text += "0123456789abcdef"[int(byte) & 15];
  EXPECT_EQ(text, "7e1c70cdc421824c200dffb382e56335e5a87154c41c2be8fb091ba75678018a");
}

}  // namespace
}  // namespace holdfast::transport
